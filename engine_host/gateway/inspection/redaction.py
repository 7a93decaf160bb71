"""Take secrets out of what is shown of a request: headers that carry keys, and texts that look like one."""

import re
from collections.abc import Mapping

from engine_host.gateway.routing.key_filter import SHORTEST_SECRET

HIDDEN = "[redacted]"
_MOST_HEADERS = 100
_LONGEST_VALUE = 2000
# Words in the name of a header whose value nobody else should see.
_SECRET_NAME = re.compile(r"auth|key|token|secret|cookie|password|credential|signature", re.IGNORECASE)
# Texts come from outside and may be megabytes: no pattern looks twice at what it passed in vain.
_SECRET = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-[A-Za-z0-9_-]{8,}"
    r"|sndr-[A-Za-z0-9_-]{30,}"
    r"|(?:gh[oprsu]_|github_pat_|glpat-|hf_|xox[abpr]-|AIza)[A-Za-z0-9_-]{16,}"
    r"|AKIA[A-Z0-9]{16}"
    r")"
)
# What begins as a JSON Web Token and is none is passed as a whole: another may not begin inside it.
_WEB_TOKEN = re.compile(r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{8,}+(\.[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+)?")
_BEARER = re.compile(r"\b(bearer)\s+[A-Za-z0-9._~+/=-]{16,}", re.IGNORECASE)
_FIELD = re.compile(
    r"(\"(?:x[-_])?(?:api[-_]?key|authorization|password|secret|(?:access|refresh|auth)[-_]?token"
    r"|client[-_]?secret)\\*\"\s*:\s*\\*\")[^\"\\]+",
    re.IGNORECASE,
)

# As files of variables and commands have it, which agents read out: NAME_TOKEN=value, password: 'value'.
# A call is none (`token = next(tokens)`), and `"token": "word"` is what engines say of log probabilities.
_ASSIGNED = re.compile(
    r"((?:(?:passw(?:or)?d|secret(?:[-_]access)?(?:[-_]key)?|api[-_]?key|access[-_]?key|private[-_]?key)"
    r"\\*[\"']?\s?[:=]|token\\*[\"']?\s?=)\s?\\*[\"']?)"
    r"(?![A-Za-z_][\w.]{0,100}\()(?![$(<{\[])[^\s\"'\\]{6,}",
    re.IGNORECASE,
)
_PRIVATE_KEY = re.compile(
    r"(-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----).*?(?=-----END|\Z)", re.DOTALL
)


def redacted(text: str) -> str:
    """Return the text without what looks like a key, a token or a password's field."""
    text = _WEB_TOKEN.sub(lambda found: HIDDEN if found[1] else found[0], text)
    text = _SECRET.sub(HIDDEN, text)
    text = _BEARER.sub(rf"\1 {HIDDEN}", text)
    text = _PRIVATE_KEY.sub(rf"\1{HIDDEN}", text)
    text = _ASSIGNED.sub(rf"\1{HIDDEN}", text)
    return _FIELD.sub(rf"\1{HIDDEN}", text)


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
