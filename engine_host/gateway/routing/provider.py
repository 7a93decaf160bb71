"""The address and the key of a provider: checked when they are set, the key read when a request goes out."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from engine_host.core.addresses import is_loopback
from engine_host.core.errors import HostError
from engine_host.core.keys.in_header import key_in_header
from engine_host.core.outside import files
from engine_host.protocol.endpoint.routes import Provider
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.language import tr

_UNIX = "unix:"
_LARGEST_KEY = 16 << 10
_OTHERS_MAY = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True)
class Address:
    """The place of a provider: the path of a socket, or a base URL; `name` is shown and never holds a key."""

    name: str
    socket: str | None = None
    url: str | None = None


def address_of(url: str) -> Address:
    """Read a provider's base URL. Raises HostError(setting_invalid) for one that is not to be trusted."""
    if url.startswith(_UNIX):
        path = url.removeprefix(_UNIX)
        if not path.startswith("/") or "\0" in path:
            raise _wrong(url, tr("a socket is named by its whole path: unix:/run/user/1000/other.sock"))
        return Address(path, socket=path)
    parts, port = _parts(url)
    host = parts.hostname or ""
    if parts.scheme not in ("https", "http") or not host:
        raise _wrong(url, tr("it begins with https:// and a host, as SDKs take it: https://HOST/v1"))
    if not url.isascii() or not url.isprintable() or " " in url:
        raise _wrong(url, tr("other letters than ASCII stand as xn-- in a host and as %… in a path"))
    try:
        host.encode("idna")
    except UnicodeError as error:
        raise _wrong(url, tr("no host has such a name")) from error
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise _wrong(
            url, tr("it holds more than a host and a path; a key is named with its variable or its file")
        )
    if parts.scheme == "http" and not is_loopback(host):
        raise _wrong(
            url, tr("without TLS others could read requests and the key; http is for this machine alone")
        )
    shown = f"[{host}]" if ":" in host else host
    return Address(f"{shown}:{port}" if port else shown, url=url.rstrip("/"))


def leaves_machine(provider: Provider) -> bool:
    """Return True for an address of another machine; a tunnel's end on this one is this machine's."""
    if provider.url.startswith(_UNIX):
        return False
    return not is_loopback(_parts(provider.url)[0].hostname or "")


def key_of(provider: Provider) -> str | None:
    """Read a provider's key; None where it needs none.

    Raises HostError(unauthorized) for a key that is not there, that others may read, or that is no key.
    """
    if provider.key_variable is not None:
        found = os.environ.get(provider.key_variable, "")
        where = tr("the variable {key_variable}", key_variable=provider.key_variable)
        if not found:
            raise _no_key(
                tr("{where} is not set for the engine host", where=where),
                tr(
                    "Set it where the host is started (export {key_variable}=…), and start the host "
                    "again; or name a file with mode 0600.",
                    key_variable=provider.key_variable,
                ),
            )
    elif provider.key_file is not None:
        where = provider.key_file
        found = _key_in(files.expanded(where))
    else:
        return None
    key = key_in_header(found)
    if key is None:
        raise _no_key(
            tr("{where} holds no key", where=where), tr("It is one line of letters, digits and signs.")
        )
    return key


def check_key_file(provider: Provider) -> None:
    """Refuse a file that cannot be a provider's key. Raises HostError(setting_invalid)."""
    if provider.key_file is None:
        return
    problem: Problem | None = None
    path = files.expanded(provider.key_file)
    if not path.is_absolute():
        problem = _no_key(
            tr("{key_file} is no whole path", key_file=provider.key_file),
            tr("Name the file from the root of the host's machine."),
        ).problem
    else:
        try:
            key_of(provider)
        except HostError as error:
            problem = error.problem
    if problem is not None:
        raise HostError(
            Reason.SETTING_INVALID,
            problem.message,
            fix=problem.fix,
            evidence={"field": "key_file"},
        )


def _key_in(path: Path) -> str:
    try:
        with files.open_regular(path) as file:
            mode = os.fstat(file.fileno())
            content = file.read(_LARGEST_KEY)
    except OSError as error:
        raise _no_key(
            tr("{path} cannot be read: {error}", path=path, error=error.strerror or error),
            tr("Write the key into it, with mode 0600."),
        ) from error
    if mode.st_mode & _OTHERS_MAY or mode.st_uid not in (os.getuid(), 0):
        raise _no_key(
            tr("others may read {path}", path=path), tr("Keep it to yourself: chmod 600 {path}", path=path)
        )
    return content.decode("utf-8", "replace")


def _no_key(what: str, fix: str) -> HostError:
    return HostError(Reason.UNAUTHORIZED, tr("There is no key for the provider: {what}.", what=what), fix=fix)


def _parts(url: str) -> tuple[SplitResult, int | None]:
    try:
        parts = urlsplit(url)
        return parts, parts.port
    except ValueError as error:
        raise _wrong(url, tr("it is no address")) from error


def _wrong(url: str, why: str) -> HostError:
    shown = url.partition("?")[0].partition("#")[0].rpartition("@")[2]
    return HostError(
        Reason.SETTING_INVALID,
        tr("{shown} is no base URL of a provider: {why}.", shown=repr(shown[:200]), why=why),
        fix="Give the base URL that the provider's documents name for OpenAI's SDK.",
    )
