"""The daemon: where everything is built and handed to one another."""
