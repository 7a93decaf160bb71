"""The modules that run on the other machine: standard library only, sent there for each step."""
