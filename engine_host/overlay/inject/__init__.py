"""What enters an engine's processes: standard library alone, because it runs inside somebody else's Python.

In a bundle this package is called `sndr_overlay`; docs/OVERLAY.md describes what it does.
"""
