"""The modules that patches touch; a bundle holds its own version of this file."""

TARGETS: "frozenset[str]" = frozenset()
