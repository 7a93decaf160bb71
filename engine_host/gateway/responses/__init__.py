"""OpenAI's Responses form, and the repairs of how llama.cpp reads and writes it."""
