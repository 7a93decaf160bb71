"""Wire types of the public endpoint: its keys, routes, requests, clients, and models loaded on demand."""
