"""What is shown where a page of the window failed."""
