"""What the window around the pages knows and does."""
