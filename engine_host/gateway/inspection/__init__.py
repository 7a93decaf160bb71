"""The sight of the requests: who asks, how much of a prompt was reused, and texts while captured."""
