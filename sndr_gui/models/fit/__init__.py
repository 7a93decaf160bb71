"""The model of the Fit page."""
