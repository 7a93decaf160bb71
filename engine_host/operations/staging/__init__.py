"""Engines started without traffic, led to after validation, and taken back in one action."""
