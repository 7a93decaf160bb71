"""Texts, tokens and prompts turned into one another, in llama.cpp's words and vLLM's, on both engines."""
