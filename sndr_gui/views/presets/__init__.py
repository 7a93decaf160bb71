"""The Presets page."""
