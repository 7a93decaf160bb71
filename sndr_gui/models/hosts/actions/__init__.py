"""Requests to another machine, each with its plan first."""
