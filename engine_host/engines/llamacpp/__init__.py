"""llama.cpp: its command line, log, servers and status."""
