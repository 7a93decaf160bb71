"""The conditions of a run: GPUs during it, and the pins that may move after it."""
