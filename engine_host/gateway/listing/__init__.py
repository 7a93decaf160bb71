"""The models that run, in the words of each client: Codex, Anthropic, LM Studio, Ollama, llama.cpp."""
