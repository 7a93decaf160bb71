"""The requests to the endpoint, as they are listed, looked at and ended."""
