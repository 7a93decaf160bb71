"""The control client: how the command line and the window reach a host."""
