"""Building llama.cpp on this machine."""
