"""Starts written down for something else to carry out: shells, containers, service managers, clusters."""
