"""Take secrets out of what is shown of a request: headers that carry keys, and texts that look like one."""

import re
from collections.abc import Mapping

from engine_host.core.outside.secret_texts import HIDDEN, redacted
from engine_host.gateway.routing.key_filter import SHORTEST_SECRET

_MOST_HEADERS = 100
_LONGEST_VALUE = 2000
# Words in the name of a header whose value nobody else should see.
_SECRET_NAME = re.compile(r"auth|key|token|secret|cookie|password|credential|signature", re.IGNORECASE)


def redacted_headers(headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the headers by name; values of those that carry secrets are hidden, the others are cut."""
    named = list(headers.items())[:_MOST_HEADERS]
    return tuple(
        (name[:200], HIDDEN if _SECRET_NAME.search(name) else redacted(value[:_LONGEST_VALUE]))
        for name, value in named
    )


def secrets_of(headers: Mapping[str, str], key: str | None = None) -> tuple[bytes, ...]:
    """Return the keys that a request came with, and `key`, which it goes on with: none is kept in a text."""
    scheme, _, rest = headers.get("authorization", "").partition(" ")
    sent = (rest or scheme, headers.get("x-api-key", ""), headers.get("api-key", ""), key or "")
    found = (value.strip().encode("latin-1", "replace") for value in sent)
    return tuple(value for value in found if len(value) >= SHORTEST_SECRET)
