"""`sndr diagnostics`."""
