"""The control API over the local socket: routes for the operations, and nothing decided here."""
