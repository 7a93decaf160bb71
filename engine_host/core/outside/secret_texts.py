"""Take out of a text what looks like a secret: keys, tokens, passwords, private keys."""

import re

HIDDEN = "[redacted]"
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
