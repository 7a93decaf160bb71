"""Graphs and bars."""
