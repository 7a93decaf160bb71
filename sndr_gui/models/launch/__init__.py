"""The models of the Launch page."""
