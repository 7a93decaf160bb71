"""Whole answers of llama.cpp out of streams, which end with who asked."""
