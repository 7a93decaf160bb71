"""The model of the Logs page."""
