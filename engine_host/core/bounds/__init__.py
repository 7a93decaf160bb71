"""Bounds for things from outside: number, size and length, and what would be waited for for ever."""
