"""The model of the Chat page."""
