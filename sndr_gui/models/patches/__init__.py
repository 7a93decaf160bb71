"""The model of the Patches page."""
