"""The page of the library."""
