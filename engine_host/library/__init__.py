"""Model files on disk: find, read their metadata, verify."""
