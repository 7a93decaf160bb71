"""Links into the window, such as sndr://page/launch?preset=ID: read strictly, since anybody can write one.

A link leads to a page and chooses what is on it. It never starts, stops, connects or saves anything.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import unquote_to_bytes

from pydantic import TypeAdapter, ValidationError

from engine_host.client import visible
from engine_host.protocol.catalog import Id
from engine_host.protocol.language import tr
from engine_host.protocol.remote.hosts import HostName
from sndr_gui.kit import formats

SCHEME = "sndr"
LONGEST = 1000
_FORM = re.compile(r"sndr://(?P<kind>[a-z]+)(?:/(?P<name>[^/?#]*))?/?(?:\?(?P<query>[^?#]*))?")
_LETTERS = re.compile(r"[!-~]*")
_ESCAPES = re.compile(r"%(?![0-9A-Fa-f]{2})")
_PRESET, _HOST = TypeAdapter[str](Id), TypeAdapter[str](HostName)
_ABOUT = {"launch": "preset", "fit": "preset"}
"""By a page: what a link to it may choose there."""


class LinkFault(StrEnum):
    """The reasons for which a link is refused."""

    OTHER_SCHEME = "other_scheme"
    TOO_LONG = "too_long"
    CHARACTERS = "characters"
    FORM = "form"
    UNKNOWN_KIND = "unknown_kind"
    UNKNOWN_PAGE = "unknown_page"
    UNKNOWN_QUERY = "unknown_query"
    NAME = "name"


_SENTENCES = {
    LinkFault.OTHER_SCHEME: tr("it does not begin with sndr://"),
    LinkFault.TOO_LONG: tr("it has more than {longest} characters", longest=formats.number(LONGEST)),
    LinkFault.CHARACTERS: tr("it holds spaces, control characters or letters that a link writes with %"),
    LinkFault.FORM: tr("it is not sndr://KIND/NAME"),
    LinkFault.UNKNOWN_KIND: tr("there are links to a page, to chat, to a preset and to a host alone"),
    LinkFault.UNKNOWN_PAGE: tr("the window has no such page"),
    LinkFault.UNKNOWN_QUERY: tr("it asks for more than the page can be asked for by a link"),
    LinkFault.NAME: tr("what it names cannot be a name here"),
}


class LinkRefusedError(ValueError):
    """A link that is not followed, and why."""

    def __init__(self, fault: LinkFault, text: str) -> None:
        # Half a character, which an argument may hold, cannot be shown.
        begin = " ".join(text[:80].encode("utf-8", "replace").decode("utf-8").split())
        shown = visible(begin) + ("…" if len(text) > 80 else "")
        super().__init__(
            tr("The link {shown} was not followed: {sentences}.", shown=shown, sentences=_SENTENCES[fault])
        )
        self.fault = fault


@dataclass(frozen=True)
class Link:
    """The page that a link leads to, and what it chooses there."""

    page: str
    preset: str = ""
    host: str = ""

    @property
    def text(self) -> str:
        """The link itself, in its usual form."""
        if self.host:
            return f"{SCHEME}://host/{self.host}"
        if self.preset and self.page == "presets":
            return f"{SCHEME}://preset/{self.preset}"
        if self.page == "chat":
            return f"{SCHEME}://chat"
        return f"{SCHEME}://page/{self.page}" + (f"?preset={self.preset}" if self.preset else "")

    @property
    def command(self) -> str:
        """The command line that follows it."""
        return shlex.join(["sndr", "open", self.text])


def parse(text: str, pages: frozenset[str]) -> Link:
    """Return where a link leads; `pages` are the names of those that there are. Raises LinkRefusedError."""
    if not text.startswith(f"{SCHEME}://"):
        raise LinkRefusedError(LinkFault.OTHER_SCHEME, text)
    if len(text) > LONGEST:
        raise LinkRefusedError(LinkFault.TOO_LONG, text)
    if not _LETTERS.fullmatch(text) or _ESCAPES.search(text):
        raise LinkRefusedError(LinkFault.CHARACTERS, text)
    form = _FORM.fullmatch(text)
    if form is None:
        raise LinkRefusedError(LinkFault.FORM, text)
    kind, name, query = form["kind"], form["name"] or "", form["query"] or ""
    match kind:
        case "page":
            if name not in pages:
                raise LinkRefusedError(LinkFault.UNKNOWN_PAGE, text)
            return Link(name, preset=_asked(name, query, text))
        case "chat" if not name and not query:
            return Link("chat")
        case "preset" if not query:
            return Link("presets", preset=_named(name, _PRESET, text))
        case "host" if not query:
            return Link("hosts", host=_named(name, _HOST, text))
        case "chat" | "preset" | "host":
            raise LinkRefusedError(LinkFault.UNKNOWN_QUERY if query else LinkFault.FORM, text)
    raise LinkRefusedError(LinkFault.UNKNOWN_KIND, text)


def _asked(page: str, query: str, text: str) -> str:
    """Return the preset that a page is asked to show; empty for none."""
    if not query:
        return ""
    name, equals, value = query.partition("=")
    if not equals or name != _ABOUT.get(page):
        raise LinkRefusedError(LinkFault.UNKNOWN_QUERY, text)
    if "&" in value:
        raise LinkRefusedError(LinkFault.UNKNOWN_QUERY, text)
    return _named(value, _PRESET, text)


def _named(part: str, kind: TypeAdapter[str], text: str) -> str:
    try:
        return kind.validate_python(unquote_to_bytes(part).decode("utf-8"))
    except (UnicodeDecodeError, ValidationError) as error:
        raise LinkRefusedError(LinkFault.NAME, text) from error
