"""The engine host: a headless daemon that starts and watches engines."""
