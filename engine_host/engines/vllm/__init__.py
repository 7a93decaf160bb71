"""vLLM: its command line, log, metrics and environments."""
