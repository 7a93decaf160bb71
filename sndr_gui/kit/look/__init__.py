"""The look of the window: its colours, how much its pages show, and the choices that a person has."""
