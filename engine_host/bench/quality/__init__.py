"""The quality of a quantised KV cache: one model, one text, several types of the cache."""
