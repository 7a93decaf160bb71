"""`sndr setup`."""
