"""The catalogue: models, hardware, profiles and presets as data, and how they resolve into settings."""
