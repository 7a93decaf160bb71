"""The public endpoint as the control API tells of it."""
