"""The connection to one machine: the command lines of ssh, its process, its questions, and why it ends."""
