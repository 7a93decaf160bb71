"""Send a file to another machine: what is there already is not sent again, and the whole is checked."""

import asyncio
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine_host.core.errors import HostError
from engine_host.core.likely_causes import lost_connection, odd_words_over_ssh, unreadable_file
from engine_host.core.outside import files, json_text
from engine_host.core.sizes import size_text
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.remote.run import SCRIPTS, RemoteOutcome, RemoteScript, Runner

RECEIVE = RemoteScript.read(SCRIPTS / "receive_file.py")
_PIECE = 1 << 18
_LEAST_HASH = 600.0
_SLOWEST_DISK = 20e6
"""Bytes a second."""

Progress = Callable[[int, int], None]
"""Told the bytes that are there, and all."""


@dataclass(frozen=True)
class Uploaded:
    """A file that lies there whole: its path there, its hash, and how many bytes had to be sent."""

    path: str
    sha256: str
    sent: int


def hashing_seconds(size: int) -> float:
    """Return the seconds that hashing so many bytes may take on another machine, whatever its disk."""
    return _LEAST_HASH + size / _SLOWEST_DISK


async def upload(
    hosts: Runner,
    name: str,
    source: Path,
    destination: str,
    *,
    mode: int = 0o644,
    progress: Progress = lambda _done, _all: None,
    measured: tuple[int, str] | None = None,
) -> Uploaded:
    """Send a file to `destination` there, a path below the home folder or an absolute one.

    A part that an earlier try left is gone on with. `measured` are its size and SHA-256 where they are known.
    Raises HostError: ssh_lost for a connection that went away (the same call goes on), disk_full,
    not_writable, verification_failed, not_found for the source.
    """
    try:
        size, digest = measured if measured else await asyncio.to_thread(_measured, source)
    except OSError as error:
        raise HostError(
            Reason.NOT_FOUND,
            tr("{source} cannot be read: {error}.", source=source, error=error.strerror or error),
            cause=unreadable_file(),
            fix="Make the file readable for you.",
            evidence={"path": str(source)},
        ) from error
    asked = {"path": destination, "size": size, "sha256": digest, "mode": mode}
    line = _line({**asked, "ask": True})
    outcome = await hosts.run(name, RECEIVE, line, seconds=hashing_seconds(size))
    there = told_by(name, destination, outcome)
    if there.get("done"):
        progress(size, size)
        return Uploaded(str(there["path"]), digest, 0)
    start = await asyncio.to_thread(_goes_on, source, there, size)

    async def feed(stream: asyncio.StreamWriter) -> None:
        stream.write(RECEIVE.sent(_line({**asked, "from": start})))
        with files.open_regular(source) as file:
            file.seek(start)
            done = start
            progress(done, size)
            while piece := await asyncio.to_thread(file.read, _PIECE):
                stream.write(piece)
                await stream.drain()
                done += len(piece)
                progress(done, size)

    told = told_by(name, destination, await hosts.run_fed(name, RECEIVE, feed, None))
    return Uploaded(str(told.get("path", destination)), digest, size - start)


def _line(asked: dict[str, Any]) -> bytes:
    return json.dumps(asked).encode() + b"\n"


def _measured(source: Path) -> tuple[int, str]:
    with files.open_regular(source) as file:
        found = hashlib.sha256()
        for piece in iter(lambda: file.read(1 << 20), b""):
            found.update(piece)
        return file.tell(), found.hexdigest()


def _goes_on(source: Path, there: dict[str, Any], size: int) -> int:
    """Return from where on to send: the end of the part there, if it is the beginning of this file."""
    have = there.get("size")
    if not isinstance(have, int) or not 0 < have <= size:
        return 0
    found = hashlib.sha256()
    with files.open_regular(source) as file:
        left = have
        while left and (piece := file.read(min(left, 1 << 20))):
            found.update(piece)
            left -= len(piece)
    return have if not left and found.hexdigest() == there.get("sha256") else 0


def told_by(name: str, destination: str, outcome: RemoteOutcome) -> dict[str, Any]:
    """Return what the program that receives files says. Raises HostError for a failure that it tells of."""
    raw = outcome.need_success(tr("Sending a file to {name}", name=name))
    try:
        told = json_text.parse_last_line(raw)
    except ValueError as error:
        raise HostError(
            Reason.SSH_FAILED,
            tr("{name} did not say what became of the file.", name=name),
            cause=odd_words_over_ssh(),
            fix="Do it again.",
            evidence={"stdout": raw[:500].decode("utf-8", "replace")},
        ) from error
    failure = told.get("error")
    if failure is None:
        return told
    evidence = {"path": destination, "host": name, **told}
    if failure == "disk_full":
        free, needed = told.get("free"), told.get("needed")
        cause = ""
        if isinstance(free, int) and isinstance(needed, int):
            cause = tr(
                "{needed} are needed there and {free} are free.",
                needed=size_text(needed),
                free=size_text(free),
            )
        raise HostError(
            Reason.DISK_FULL,
            tr("The disk of {name} is full: {destination} was not sent.", name=name, destination=destination),
            cause=cause,
            fix="Free some space there and do it again.",
            evidence=evidence,
        )
    if failure == "damaged":
        raise HostError(
            Reason.VERIFICATION_FAILED,
            tr(
                "{destination} came to {name} damaged, and was removed there.",
                destination=destination,
                name=name,
            ),
            cause="The file changed while it was sent, or the disk there is faulty.",
            fix="Do it again.",
            evidence=evidence,
        )
    if failure == "interrupted":
        raise HostError(
            Reason.SSH_LOST,
            tr("{destination} was sent to {name} in part.", destination=destination, name=name),
            cause=lost_connection(),
            fix=Fix(text="Do it again: it goes on where it stopped."),
            evidence=evidence,
        )
    raise HostError(
        Reason.NOT_WRITABLE,
        tr("{destination} cannot be written on {name}.", destination=destination, name=name),
        cause=str(told.get("text", ""))[:300],
        fix="Choose a folder there that is yours.",
        evidence=evidence,
    )
