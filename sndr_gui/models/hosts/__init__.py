"""The page Hosts: its cards, its form, its questions, and how a host is told in a word."""
