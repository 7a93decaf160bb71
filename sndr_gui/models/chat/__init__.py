"""What the Chat page knows and does."""
