"""Leaving the window: the question before engines end, and the way back from the tray."""
