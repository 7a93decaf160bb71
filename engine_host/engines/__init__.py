"""Engines: one adapter each, and the manager that owns their processes."""
