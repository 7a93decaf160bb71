"""Requests for models that have to be loaded first: the loader, the wait, and what is told of a failure."""
