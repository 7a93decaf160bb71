"""Texts as shells, unit files and Compose read them back unchanged."""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

from engine_host.deploy.deployment import Root

_MARK = re.compile("(" + "|".join(re.escape(root) for root in Root) + ")")
_UNIT_PLAIN = re.compile(r"[A-Za-z0-9_@:,./+=-]+")


def shell(text: str, roots: Mapping[Root, str]) -> str:
    """One word of a Bourne shell; `roots` gives variables (`$models`) for the marks."""
    parts = [part for part in _MARK.split(text) if part]
    if not any(part in roots for part in parts):
        return shlex.quote(text)
    return "".join(
        f'"{roots[Root(part)]}"' if part in roots else "" if not part else shlex.quote(part) for part in parts
    )


def unit(text: str, roots: Mapping[Root, str]) -> str:
    """One word of a unit file's command line or Environment=; `roots` gives paths with specifiers.

    systemd.service(5): `%` is a specifier, `$` a variable, backslashes and quotes are C's.
    """
    parts = (
        roots[Root(part)] if part in roots else part.replace("%", "%%").replace("$", "$$")
        for part in _MARK.split(text)
    )
    return _unit_quoted("".join(parts), plain=text)


def unit_value(text: str, roots: Mapping[Root, str]) -> str:
    """The same for Environment=, where `$` has no meaning."""
    parts = (roots[Root(part)] if part in roots else part.replace("%", "%%") for part in _MARK.split(text))
    return _unit_quoted("".join(parts), plain=text)


def unit_plain(text: str, roots: Mapping[Root, str]) -> str:
    """A value that systemd takes whole, such as Description= and paths: `%` alone has a meaning."""
    return "".join(
        roots[Root(part)] if part in roots else part.replace("%", "%%") for part in _MARK.split(text)
    )


def _unit_quoted(text: str, plain: str) -> str:
    if plain and _UNIT_PLAIN.fullmatch(_MARK.sub("", plain) or "x") and " " not in text:
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def compose(text: str, roots: Mapping[Root, str]) -> str:
    """A value of a Compose file: what is not meant as a variable is no variable."""
    return "".join(
        roots[Root(part)] if part in roots else part.replace("$", "$$") for part in _MARK.split(text)
    )


def continued(words: Sequence[str], indent: str = "    ", per_line: Iterable[str] = ()) -> str:
    """Words of a shell command, an option with its value a line.

    A word that begins with `-` opens a line; `per_line` are words that do so too.
    """
    lines: list[list[str]] = []
    own = set(per_line)
    for word in words:
        if not lines or word.lstrip("'\"").startswith("-") or word in own:
            lines.append([word])
        else:
            lines[-1].append(word)
    return f" \\\n{indent}".join(" ".join(line) for line in lines)


def bracketed(address: str) -> str:
    """An IP address as it stands before a port: one of IPv6 in brackets (RFC 3986, section 3.2.2)."""
    return f"[{address}]" if ":" in address else address
