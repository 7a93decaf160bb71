"""Wire types of what is measured: proofs of kernels, and quality."""
