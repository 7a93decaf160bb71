"""Measurements on a GPU machine, with random weights of real shapes."""
