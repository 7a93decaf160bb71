"""The editor of the keys, below the sheet of shortcuts."""
