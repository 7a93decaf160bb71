"""The sections of one host's detail."""
