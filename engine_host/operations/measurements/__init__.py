"""Measurements that a person asks for: proofs of the kernels, the quality of a quantised KV cache."""
