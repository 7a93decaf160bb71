"""What every part of the host builds on: errors, paths, settings, store, jobs, events, log lines."""
