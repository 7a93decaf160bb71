"""The model of the Engine page."""
