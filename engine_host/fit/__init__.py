"""Estimate a model's memory: bytes of weights, KV cache and states, by the rules of its engine."""
