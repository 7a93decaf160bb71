"""What the program lays over an inference engine: kernels and patches of its own."""
