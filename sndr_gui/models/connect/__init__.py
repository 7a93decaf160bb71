"""The model of the Connect page."""
