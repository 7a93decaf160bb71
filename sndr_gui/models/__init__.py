"""The models of the pages: their state and commands, without widgets."""
