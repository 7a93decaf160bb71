"""Bounds for things from outside: number, size and length."""
