"""The services that only read, for a host and for a command where none runs."""
