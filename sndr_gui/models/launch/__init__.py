"""What the Launch page knows and does."""
