"""Wire types of a start: requests, plans, fit, consents, and what is written down."""
