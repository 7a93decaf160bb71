"""Launch plans: what is started, with which settings, and why."""
