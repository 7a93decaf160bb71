"""What the Home page knows and does."""
