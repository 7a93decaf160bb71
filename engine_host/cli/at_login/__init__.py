"""`sndr autostart`."""
