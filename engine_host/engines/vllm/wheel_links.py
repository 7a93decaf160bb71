"""Wheels that folders and pages of links offer, as pip and uv read `--find-links`."""

import re
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import httpx
from packaging.requirements import Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from packaging import tags

_TIMEOUT = 20.0
_PAGES = (".html", ".htm")


def environment_tags(home: Path) -> frozenset[tags.Tag]:
    """The tags of wheels that the CPython of a virtual environment takes on this machine.

    Raises OSError when the folder is no environment, ValueError when it does not say its version.
    """
    written = (home / "pyvenv.cfg").read_text(encoding="utf-8")
    found = re.search(r"^version(?:_info)?\s*=\s*(\d+)\.(\d+)", written, re.MULTILINE)
    if found is None:
        raise ValueError(f"{home / 'pyvenv.cfg'} names no version of Python")
    version = int(found[1]), int(found[2])
    # Not `sys_tags`: a frozen program's own Python is not the one that the environment has.
    platforms = list(tags.platform_tags())
    own = tags.cpython_tags(version, platforms=platforms)
    return frozenset(own) | frozenset(tags.compatible_tags(version, f"cp{version[0]}{version[1]}", platforms))


def has_wheel(links: Iterable[str], requirement: str, usable: frozenset[tags.Tag]) -> bool:
    """Return True if a folder, a page or an address offers a wheel of a requirement with one of these tags.

    A page that cannot be read offers nothing; uv itself reports what is wrong with it.
    """
    required = Requirement(requirement)
    return any(_fits(name, required, usable) for link in links for name in _names(link))


def _fits(name: str, required: Requirement, usable: frozenset[tags.Tag]) -> bool:
    try:
        project, version, _, offered = parse_wheel_filename(name)
    except InvalidWheelFilename:
        return False
    named = project == canonicalize_name(required.name)
    return named and required.specifier.contains(version, prereleases=True) and not usable.isdisjoint(offered)


def _names(link: str) -> Iterator[str]:
    """The file names of what a link leads to."""
    parts = urlsplit(link)
    if link.endswith(".whl"):
        yield unquote(parts.path).rpartition("/")[2]
    elif parts.scheme in {"http", "https"}:
        yield from _of_page(_fetched(link))
    else:
        path = Path(unquote(parts.path) if parts.scheme == "file" else link)
        try:
            if path.is_dir():
                yield from sorted(entry.name for entry in path.iterdir())
            elif path.suffix.lower() in _PAGES:
                yield from _of_page(path.read_text(encoding="utf-8", errors="replace"))
        except OSError:
            return


def _fetched(address: str) -> str:
    try:
        return httpx.get(address, timeout=_TIMEOUT, follow_redirects=True).raise_for_status().text
    except (httpx.HTTPError, httpx.InvalidURL):
        return ""


def _of_page(page: str) -> Iterator[str]:
    reader = _Links()
    reader.feed(page)
    for link in reader.found:
        # The page's own address does not matter: a relative link and a whole one end in the same name.
        yield unquote(urlsplit(urljoin("file:///", link)).path).rpartition("/")[2]


class _Links(HTMLParser):
    """The targets of a page's anchors."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.found += [value for name, value in attrs if name == "href" and value]
