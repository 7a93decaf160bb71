"""Plans, events, jobs and log files as text for a terminal."""
