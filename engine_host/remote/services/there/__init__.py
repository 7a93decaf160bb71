"""Modules that run on the machine of a service, as the steps of an install do; Python 3.8, nothing else."""
