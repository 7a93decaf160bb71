"""The model of the Home page."""
