"""The model of the first run."""
