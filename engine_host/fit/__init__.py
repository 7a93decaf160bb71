"""What a model needs on a machine: bytes of weights, KV cache and states, by the rules of its engine."""
