"""The foundations of the host: errors, paths, settings, store, jobs, events, log lines."""
