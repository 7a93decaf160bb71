"""The page of routes, drawn."""
