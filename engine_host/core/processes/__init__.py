"""Processes of our own: their command lines, and what they must not leave behind."""
