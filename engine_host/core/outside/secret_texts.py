"""Take out of a text what looks like a secret: keys, tokens, passwords, private keys."""

import re

from engine_host.core.outside.key_forms import KEY_FORMS

HIDDEN = "[redacted]"
# Texts come from outside and may be megabytes: no pattern looks twice at what it passed in vain. In JSON and
# in addresses the letter before a key may be the end of what stands for another (`\\n`, `\\u003d`, `%3D`).
_SECRET = re.compile(
    r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=\\u[0-9A-Fa-f]{4})|(?<=%[0-9A-Fa-f]{2}))(?:"
    + "|".join(form.pattern for form in KEY_FORMS)
    + ")"
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
# None is a call (`token = next(tokens)`), a token of a vocabulary (`EOS token = 151645`), nor
# `"token": "word"`, which engines say of log probabilities.
_ASSIGNED = re.compile(
    r"((?:(?:passw(?:or)?d|secret(?:[-_]access)?(?:[-_]key)?|api[-_]?key|access[-_]?key|private[-_]?key)"
    r"\\*[\"']?\s?[:=]|token\\*[\"']?\s?=(?!\s?\d{1,7}(?!\w)))\s?\\*[\"']?)"
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
