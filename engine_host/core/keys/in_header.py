"""A key from the environment or a file as a header of a request carries it."""


def key_in_header(found: str) -> str | None:
    """Return a key without the white space around it; None for what no header can carry.

    Libraries of HTTP put a header that they refuse into their error, so that a key is checked before.
    """
    key = found.strip()
    return key if key and key.isascii() and key.isprintable() and " " not in key else None
