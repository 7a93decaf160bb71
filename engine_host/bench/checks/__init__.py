"""Checks of what an engine answers: gates of a speed, and the levels of a verification."""
