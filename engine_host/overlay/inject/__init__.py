"""The code inside an engine's processes: standard library alone, since it runs in somebody else's Python.

In a bundle this package is called `sndr_overlay`; docs/OVERLAY.md describes what it does.
"""
