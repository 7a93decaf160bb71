"""TurboQuant attention kernels: store, decode and verify over a quantised key-value cache.

They import torch and Triton alone, which an engine's own environment has and the program's has not: a test
or a bench puts the patch's folder on its path and imports `kernels`.
"""
