"""The page that stands where another one of the window failed."""
