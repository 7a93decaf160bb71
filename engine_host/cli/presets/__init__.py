"""`sndr presets` and its commands."""
