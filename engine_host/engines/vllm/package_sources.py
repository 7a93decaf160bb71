"""The package indexes for uv: those that pip is configured with on this machine."""

import configparser
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from engine_host.core.outside import files

_LARGEST = 1 << 20


@dataclass(frozen=True, slots=True)
class PackageSources:
    """An index in place of PyPI, if the person has one, and folders or pages with wheels."""

    index: str | None = None
    links: tuple[str, ...] = ()

    @property
    def arguments(self) -> list[str]:
        """The same as arguments of uv."""
        index = ["--default-index", self.index] if self.index else []
        return index + [word for link in self.links for word in ("--find-links", link)]


def package_sources(environment: Mapping[str, str] | None = None, home: Path | None = None) -> PackageSources:
    """Reads pip's variables and files; uv's own index, where set, reaches uv by itself.

    A relative folder of wheels is one of the current folder, as with pip.
    """
    env = os.environ if environment is None else environment
    written = _pip_files(env, home or Path.home())
    index = env.get("PIP_INDEX_URL") or written.get("index-url")
    if env.get("UV_DEFAULT_INDEX") or env.get("UV_INDEX_URL"):
        index = None
    links = (env.get("PIP_FIND_LINKS") or written.get("find-links") or "").split()
    # uv leaves its variable out as soon as it gets arguments, so they hold that too.
    links += [link for link in env.get("UV_FIND_LINKS", "").split(",") if link]
    return PackageSources(index, tuple(dict.fromkeys(map(_absolute, links))))


def _absolute(link: str) -> str:
    """uv runs in another folder than this program."""
    try:
        is_address = bool(urlsplit(link).scheme)
    except ValueError:
        is_address = True  # Of a form that uv complains of in its own words.
    return link if is_address else str(Path(os.path.expanduser(link)).absolute())


def _pip_files(env: Mapping[str, str], home: Path) -> dict[str, str]:
    """`[global]` of pip's files; a later file wins, as with pip."""
    found: dict[str, str] = {}
    named_files = [
        Path("/etc/pip.conf"),
        home / ".pip" / "pip.conf",
        Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "pip" / "pip.conf",
    ]
    if named := env.get("PIP_CONFIG_FILE"):
        named_files.append(Path(named))
    for file in named_files:
        parser = configparser.ConfigParser(interpolation=None)
        try:
            parser.read_string(files.read_text(file, _LARGEST))
        except (configparser.Error, UnicodeDecodeError, OSError):
            continue  # pip would complain of its own file; it is not ours to judge.
        if parser.has_section("global"):
            found |= dict(parser["global"])
    return found
