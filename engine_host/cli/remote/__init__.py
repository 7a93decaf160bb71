"""Other machines: kept, connected, looked at."""
