"""Public model ids and what they stand for: engines by other names, or a provider elsewhere."""
