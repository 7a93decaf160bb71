"""The parts that every command that starts a model shares."""
