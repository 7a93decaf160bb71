"""Patches: their catalogue, the plan for a start, what took effect, and the search for one that breaks it."""
