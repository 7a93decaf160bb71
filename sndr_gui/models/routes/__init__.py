"""The page of routes, without its widgets."""
