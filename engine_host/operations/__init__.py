"""What the control API does, one module a resource: combines the subjects, knows no HTTP."""
