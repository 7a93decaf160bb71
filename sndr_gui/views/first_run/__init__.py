"""The first run: a dialog that nothing waits for."""
