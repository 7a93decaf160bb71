"""Launch plans, one module an engine."""
