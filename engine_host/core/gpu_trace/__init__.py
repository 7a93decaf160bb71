"""Recorded traces of GPUs: one file, written by `sndr telemetry record` and played back as what it is."""
