"""The engine host: a headless daemon that starts and watches engines."""

__version__ = "0.2.0"
