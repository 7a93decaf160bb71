"""The overlay over an inference engine: kernels and patches of our own."""
