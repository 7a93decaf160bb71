"""The model of the window around the pages."""
