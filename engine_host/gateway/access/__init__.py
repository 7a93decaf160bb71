"""Access to the endpoint: authentication, addresses, and the number of requests at a time."""
