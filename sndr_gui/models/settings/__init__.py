"""The model of the Settings page."""
