"""A model by its numbers: layers, heads, tensors and weights."""
