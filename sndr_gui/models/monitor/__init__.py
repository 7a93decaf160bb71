"""The model of the Monitor page."""
