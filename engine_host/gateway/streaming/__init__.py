"""The way of a stream's pieces to a client."""
