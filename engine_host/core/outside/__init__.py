"""Read what comes from outside with bounds: files, JSON, lines and answers that others may have made."""
