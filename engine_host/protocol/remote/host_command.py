"""Commands of `sndr` as they are typed for a host on another machine."""

import re

_HERE = ("connect", "host", "serve", "version")
"""Commands of this machine alone: they are never typed for another one."""
_COMMAND = re.compile(rf"\bsndr (?!(?:{'|'.join(_HERE)})\b)(?=[a-z])")


def for_host(text: str, host: str) -> str:
    """Return a text in which each of our commands names the host; `host` is empty for this machine."""
    return _COMMAND.sub(f"sndr --host {host} ", text) if host else text
