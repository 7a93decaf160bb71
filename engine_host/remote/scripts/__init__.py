"""Fixed programs that run on other machines; what differs comes to them as data on their standard input."""
