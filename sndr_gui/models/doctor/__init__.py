"""The page of the doctor, without its widgets."""
