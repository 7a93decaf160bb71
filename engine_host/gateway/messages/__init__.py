"""Anthropic's Messages form, and the repairs of how llama.cpp reads and writes it."""
