"""TurboQuant attention kernels: store, decode and verify over a quantised key-value cache.

Nothing else in the program imports these modules: they need torch and Triton, which only an engine's own
environment has.
"""
