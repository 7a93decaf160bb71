"""Runs of the bench lab and comparisons of them in words: for the command line, the window and files."""
