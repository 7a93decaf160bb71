"""The window: a Qt client of the engine host."""
