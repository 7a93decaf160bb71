"""What the Patches page knows and does."""
