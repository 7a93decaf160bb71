"""The model of the Presets page."""
