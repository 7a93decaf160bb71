"""`sndr telemetry`."""
