"""The table of the clients: one row each."""
