"""Models of the hub downloaded, verified, deleted and restored."""
