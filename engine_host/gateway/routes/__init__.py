"""The routes of the endpoint: which there are, and how a request of each becomes one to an engine."""
