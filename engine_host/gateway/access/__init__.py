"""Who may use the endpoint, from where, and how many at a time."""
