"""The targets that a start is written down for, and what their texts share."""
