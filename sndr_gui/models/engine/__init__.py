"""What the Engine page knows and does."""
