"""The conversations that the window's Chat has kept."""
