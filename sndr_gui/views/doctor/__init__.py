"""The page of the doctor."""
