"""The page of the bench lab."""
