"""Checks before a start, each a list of findings."""
