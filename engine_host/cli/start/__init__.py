"""What every command that starts a model shares."""
