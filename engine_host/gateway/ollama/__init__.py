"""Ollama's requests and answers, as what every engine has. Source: docs/api.md of Ollama."""
