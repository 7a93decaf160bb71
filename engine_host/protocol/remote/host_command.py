"""Commands of `sndr` as they are typed for a host on another machine."""

import re

HERE = {
    "autostart": "it is about the log-in on this machine. sndr host install does it on another one.",
    "connect": "it sets the editors of this machine. A route leads its endpoint there.",
    "host": "it says which hosts this machine knows.",
    "open": "the window is this machine's; it shows other hosts too: sndr open sndr://host/NAME.",
    "chats": "the window keeps conversations on its own machine.",
    "serve": "a host is started on its own machine: sndr host shell NAME.",
    "version": "it is about this program.",
}
"""The commands of this machine alone, and why; they are never typed for another one."""
_COMMAND = re.compile(rf"\bsndr (?!(?:{'|'.join(HERE)})\b)(?=[a-z])")


def for_host(text: str, host: str) -> str:
    """Return a text in which each of our commands names the host; `host` is empty for this machine."""
    return _COMMAND.sub(f"sndr --host {host} ", text) if host else text
