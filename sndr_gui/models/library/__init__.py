"""The library: models of this machine, of the hub, and deleted ones."""
