"""The Patches page."""
