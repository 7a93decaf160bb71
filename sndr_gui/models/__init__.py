"""What each page knows and does; no widgets."""
