"""Fetch a file of another machine: what is here already is not sent again, and the whole is checked."""

import asyncio
import contextlib
import errno
import hashlib
import json
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from engine_host.core.errors import HostError
from engine_host.core.outside import files, json_text
from engine_host.protocol.errors import Fix, Reason
from engine_host.remote.run import SCRIPTS, RemoteScript, Runner, fed
from engine_host.remote.scripts.receive_file import part_of

_SEND = RemoteScript.read(SCRIPTS / "send_file.py")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_LONGEST_LINE = 64 << 10
_LONGEST_HASH = 3600.0
"""Seconds for hashing a file there."""


@dataclass(frozen=True)
class Downloaded:
    """A file that lies here whole: its hash, and how many bytes had to be carried."""

    sha256: str
    carried: int


@dataclass
class _Answer:
    """The answer of the program there, as it comes: a mark, a line, the bytes, a line."""

    mark: bytes
    write: Callable[[bytes], None]
    begin: Callable[[int, int], None]
    left: int | None = None
    head: dict[str, Any] | None = None
    tail: bytes = b""
    _kept: bytes = field(default=b"", repr=False)
    _marked: bool = False

    async def take(self, piece: bytes) -> None:
        """Take a piece. Raises ValueError for an answer of another form, and what writing raises."""
        if self.left is None:
            self._kept += piece
            if not self._headed():
                return
            piece, self._kept = self._kept, b""
        if self.left:
            body, piece = piece[: self.left], piece[self.left :]
            self.left -= len(body)
            await asyncio.to_thread(self.write, body)
        self.tail = (self.tail + piece)[:_LONGEST_LINE]

    def _headed(self) -> bool:
        if not self._marked:
            before, mark, after = self._kept.partition(b"\n" + self.mark + b"\n")
            if not mark:
                if len(before) > _LONGEST_LINE:
                    raise ValueError("it says something else")
                return False
            self._marked, self._kept = True, after
        line, end, after = self._kept.partition(b"\n")
        if not end:
            if len(line) > _LONGEST_LINE:
                raise ValueError("its line has no end")
            return False
        self.head, self._kept = json_text.parse_object(line), after
        size, start = self.head.get("size"), self.head.get("from")
        if "error" in self.head:
            self.left = 0
        elif isinstance(size, int) and isinstance(start, int) and 0 <= start <= size < 1 << 60:
            self.left = size - start
            self.begin(start, size)
        else:
            raise ValueError("it does not say how much comes")
        return True


async def hash_there(hosts: Runner, name: str, source: str) -> str:
    """Return the SHA-256 of a file there. Raises HostError."""
    mark = secrets.token_hex(16)
    asked = json.dumps({"path": source, "mark": mark, "only_hash": True}).encode() + b"\n"
    outcome = await hosts.run(name, _SEND, asked, seconds=_LONGEST_HASH)
    raw = outcome.need_success(f"Hashing {source} on {name}")
    try:
        told = json_text.parse_last_line(raw)
    except ValueError as error:
        raise _no_answer(name, source) from error
    if "error" in told:
        raise _refused(name, source, told)
    return str(told.get("sha256", ""))


async def download(
    hosts: Runner,
    name: str,
    source: str,
    destination: Path,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Downloaded:
    """Fetch a file of another machine to a path here; a part that an earlier try left is gone on with.

    Raises HostError: ssh_lost for a connection that went away (the same call goes on), disk_full,
    not_writable, verification_failed, model_file_missing.
    """
    part = Path(part_of(str(destination)))
    try:
        await asyncio.to_thread(destination.parent.mkdir, parents=True, exist_ok=True)
        return await _fetched(hosts, name, source, destination, part, progress)
    except OSError as error:
        if error.errno in _FULL:
            await asyncio.to_thread(part.unlink, missing_ok=True)
            raise HostError(
                Reason.DISK_FULL,
                f"The disk of this machine is full: {destination} was not fetched.",
                fix="Free some space and do it again.",
                evidence={"path": str(destination), "errno": error.errno},
            ) from error
        raise HostError(
            Reason.NOT_WRITABLE,
            f"{destination} cannot be written: {error.strerror or error}.",
            fix="Choose a folder that is yours.",
            evidence={"path": str(destination), "errno": error.errno},
        ) from error


async def _fetched(
    hosts: Runner,
    name: str,
    source: str,
    destination: Path,
    part: Path,
    progress: Callable[[int, int], None],
) -> Downloaded:
    have, known = await asyncio.to_thread(_of_part, part)
    mark = secrets.token_hex(16)
    asked = {"path": source, "mark": mark, "size": have, "sha256": known.hexdigest()}
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(part, flags, 0o600), "r+b") as file:
        written = _Written(file, known, progress)
        answer = _Answer(mark.encode(), written.write, written.begin)
        line = json.dumps(asked).encode() + b"\n"
        try:
            outcome = await hosts.run_fed(name, _SEND, fed(_SEND.sent(line)), None, take=answer.take)
        except ValueError as error:
            raise _no_answer(name, source) from error
        if answer.head is not None and "error" in answer.head:
            await asyncio.to_thread(part.unlink, missing_ok=True)
            raise _refused(name, source, answer.head)
        outcome.need_success(f"Fetching {source} from {name}")
        try:
            told = json_text.parse_last_line(answer.tail)
        except ValueError as error:
            raise _no_answer(name, source) from error
        await asyncio.to_thread(written.finish)
    if told.get("sha256") != written.hash.hexdigest():
        await asyncio.to_thread(part.unlink, missing_ok=True)
        raise HostError(
            Reason.VERIFICATION_FAILED,
            f"{source} came from {name} damaged, and was removed here.",
            cause="The file changed while it was fetched, or a disk is faulty.",
            fix="Do it again.",
            evidence={"path": str(destination), "host": name},
        )
    await asyncio.to_thread(part.chmod, 0o644)
    await asyncio.to_thread(part.replace, destination)
    return Downloaded(written.hash.hexdigest(), written.carried)


class _Written:
    """The part as it grows, with its hash."""

    def __init__(self, file: IO[bytes], known: Any, progress: Callable[[int, int], None]) -> None:
        self._file = file
        self._progress = progress
        self.hash = known
        self.carried, self._at, self._all = 0, 0, 0

    def begin(self, start: int, size: int) -> None:
        """Go on where the other side does."""
        if not start:
            self.hash = hashlib.sha256()
        self._file.seek(start)
        self._file.truncate()
        self._at, self._all = start, size

    def write(self, piece: bytes) -> None:
        """Write what came."""
        self._file.write(piece)
        self.hash.update(piece)
        self.carried += len(piece)
        self._progress(self._at + self.carried, self._all)

    def finish(self) -> None:
        """Have all of it on the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())


def _of_part(part: Path) -> tuple[int, Any]:
    found, size = hashlib.sha256(), 0
    with contextlib.suppress(FileNotFoundError), files.open_regular(part, follow=False) as file:
        for piece in iter(lambda: file.read(1 << 20), b""):
            found.update(piece)
            size += len(piece)
    return size, found


def _no_answer(name: str, source: str) -> HostError:
    return HostError(
        Reason.SSH_FAILED,
        f"{name} did not send {source} as it should.",
        cause="Its shell prints something else, or its python3 is very old.",
        fix=Fix(text="Look at the machine.", command=f"sndr host shell {name}"),
    )


def _refused(name: str, source: str, told: dict[str, Any]) -> HostError:
    return HostError(
        Reason.MODEL_FILE_MISSING,
        f"{source} cannot be read on {name}.",
        cause=str(told.get("text", ""))[:300],
        fix=Fix(text="See what is there.", command=f"sndr host shell {name}"),
        evidence={"path": source, "host": name},
    )
