"""Repairs of what a conversation is made of, whichever form it comes in."""
