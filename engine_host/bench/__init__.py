"""Speed of engines: load generation, statistics, reports."""
