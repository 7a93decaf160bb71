"""The desktop's message bus: what is told to a person who looks elsewhere."""
