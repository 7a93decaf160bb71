"""The functions of the control API, one module a resource: combines the subjects, knows no HTTP."""
