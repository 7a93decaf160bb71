"""Take a provider's key out of its answer as it passes; a provider may repeat what it was sent."""

SHORTEST_SECRET = 8
"""Bytes: what is shorter is a placeholder, and may be a word of any answer."""
_HIDDEN = b"***"


class KeyFilter:
    """One answer's way past the key, also where two pieces share it."""

    def __init__(self, key: str) -> None:
        self._key = key.encode()
        self._held = b""

    def feed(self, piece: bytes) -> bytes:
        """Return what may pass now; an end that may be the beginning of the key waits for more."""
        data = (self._held + piece).replace(self._key, _HIDDEN)
        kept = self._begun(data)
        self._held = data[kept:]
        return data[:kept]

    def end(self) -> bytes:
        """Return what still waited, once nothing more comes."""
        held, self._held = self._held, b""
        return held

    def _begun(self, data: bytes) -> int:
        """Return the place from which all to the end is the key's beginning."""
        at = data.find(self._key[:1], max(0, len(data) - len(self._key) + 1))
        while at >= 0 and not self._key.startswith(data[at:]):
            at = data.find(self._key[:1], at + 1)
        return at if at >= 0 else len(data)


def key_filter(key: str | None) -> KeyFilter | None:
    """Return the filter for a target's key; None where there is none to hide."""
    return KeyFilter(key) if key is not None and len(key) >= SHORTEST_SECRET else None
