"""The Engine page."""
