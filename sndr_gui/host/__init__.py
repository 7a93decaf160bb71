"""The connection to a host, and its state as events tell it."""
