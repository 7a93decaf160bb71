"""What the Fit page knows and does."""
