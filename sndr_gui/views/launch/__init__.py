"""The Launch page."""
