"""What the Presets page knows and does."""
