"""The look of the window: its colours, and the choices that a person has."""
