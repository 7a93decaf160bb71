"""`sndr top`."""
