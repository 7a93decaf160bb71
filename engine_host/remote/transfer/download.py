"""Fetch a file of another machine: what is here already is not sent again, and the whole is checked."""

import asyncio
import contextlib
import errno
import fcntl
import hashlib
import json
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from engine_host.core.errors import HostError
from engine_host.core.likely_causes import unwritable_folder
from engine_host.core.outside import json_text
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.remote.run import SCRIPTS, RemoteScript, Runner, fed
from engine_host.remote.scripts.receive_file import part_of
from engine_host.remote.upload import hashing_seconds

_SEND = RemoteScript.read(SCRIPTS / "send_file.py")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_LONGEST_LINE = 64 << 10
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
_PIECE = 1 << 20


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


async def hash_there(hosts: Runner, name: str, source: str, size: int) -> str:
    """Return the SHA-256 of a file there of so many bytes. Raises HostError."""
    mark = secrets.token_hex(16)
    asked = json.dumps({"path": source, "mark": mark, "only_hash": True}).encode() + b"\n"
    outcome = await hosts.run(name, _SEND, asked, seconds=hashing_seconds(size))
    raw = outcome.need_success(tr("Hashing {source} on {name}", source=source, name=name))
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
    checking: Callable[[int], None] = lambda _done: None,
    *,
    replace: bool = False,
) -> str:
    """Fetch a file of another machine to a path here, and return its SHA-256; an earlier try's part is used.

    What lies on the disk is hashed before it gets its name; `checking` is told of the bytes that were. A file
    that is there stays, without `replace`. Raises HostError: ssh_lost for a connection that went away (the
    same call goes on), conflict for a file that is there or that somebody else fetches to the same path,
    disk_full, not_writable, verification_failed, model_file_missing.
    """
    part = Path(part_of(str(destination)))
    try:
        await asyncio.to_thread(destination.parent.mkdir, parents=True, exist_ok=True)
        with _held(part) as file:
            if file is None:
                raise _fetched_by_another(destination)
            _need_place(destination, replace=replace)
            try:
                done = await _fetched(hosts, name, source, destination, part, file, progress, checking)
            except OSError as error:
                if error.errno in _FULL:
                    await asyncio.to_thread(part.unlink, missing_ok=True)
                raise
            _need_place(destination, replace=replace)
            if not _is_at(part, file):
                raise _fetched_by_another(destination)
            await asyncio.to_thread(part.chmod, 0o644)
            await asyncio.to_thread(part.replace, destination)
            return done
    except OSError as error:
        if error.errno in _FULL:
            raise HostError(
                Reason.DISK_FULL,
                tr(
                    "The disk of this machine is full: {destination} was not fetched.",
                    destination=destination,
                ),
                fix="Free some space and do it again.",
                evidence={"path": str(destination), "errno": error.errno},
            ) from error
        raise HostError(
            Reason.NOT_WRITABLE,
            tr(
                "{destination} cannot be written: {error}.",
                destination=destination,
                error=error.strerror or error,
            ),
            cause=unwritable_folder(),
            fix="Choose a folder that is yours.",
            evidence={"path": str(destination), "errno": error.errno},
        ) from error


@contextlib.contextmanager
def _held(part: Path) -> Iterator[IO[bytes] | None]:
    """Open a part, and keep everybody else from it meanwhile; None where somebody has it."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(part, flags, 0o600), "r+b") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, f"{part} is no regular file")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        except OSError as error:
            # Some file systems have no locks; the hash of what lies there still tells.
            if error.errno not in _NO_LOCKS:
                raise
        if not _is_at(part, file):
            # Whoever had it was done in between: this is the whole file now.
            yield None
            return
        try:
            yield file
        finally:
            if _is_at(part, file) and not os.fstat(file.fileno()).st_size:
                part.unlink(missing_ok=True)


def _is_at(part: Path, file: IO[bytes]) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.stat(part, follow_symlinks=False), os.fstat(file.fileno()))
    return False


def _need_place(destination: Path, *, replace: bool) -> None:
    if not replace and os.path.lexists(destination):
        raise HostError(
            Reason.CONFLICT,
            tr("{destination} came to be there meanwhile, and stays.", destination=destination),
            cause="Another transfer or program put it there.",
            fix="Do it again: what is there is compared first.",
            evidence={"path": str(destination)},
        )


async def _fetched(
    hosts: Runner,
    name: str,
    source: str,
    destination: Path,
    part: Path,
    file: IO[bytes],
    progress: Callable[[int, int], None],
    checking: Callable[[int], None],
) -> str:
    """Bring the part to its end, and check it as it lies on the disk; return its SHA-256."""
    have, known = await _of_part(file, checking)
    mark = secrets.token_hex(16)
    asked = {"path": source, "mark": mark, "size": have, "sha256": known}
    written = _Written(file, progress)
    answer = _Answer(mark.encode(), written.write, written.begin)
    line = json.dumps(asked).encode() + b"\n"
    try:
        outcome = await hosts.run_fed(name, _SEND, fed(_SEND.sent(line)), None, take=answer.take)
    except ValueError as error:
        raise _no_answer(name, source) from error
    if answer.head is not None and "error" in answer.head:
        # The part stays: a disk there that is not mounted says the same as one without the file.
        raise _refused(name, source, answer.head)
    outcome.need_success(tr("Fetching {source} from {name}", source=source, name=name))
    try:
        told = json_text.parse_last_line(answer.tail)
    except ValueError as error:
        raise _no_answer(name, source) from error
    await asyncio.to_thread(written.finish)
    _, lies = await _of_part(file, checking)
    if told.get("sha256") != lies:
        await asyncio.to_thread(part.unlink, missing_ok=True)
        raise HostError(
            Reason.VERIFICATION_FAILED,
            tr("{source} came from {name} damaged, and was removed here.", source=source, name=name),
            cause="The file changed while it was fetched, or a disk is faulty.",
            fix="Do it again.",
            evidence={"path": str(destination), "host": name},
        )
    return lies


class _Written:
    """The part as it grows."""

    def __init__(self, file: IO[bytes], progress: Callable[[int, int], None]) -> None:
        self._file = file
        self._progress = progress
        self._at, self._all = 0, 0

    def begin(self, start: int, size: int) -> None:
        """Go on where the other side does."""
        self._file.seek(start)
        self._file.truncate()
        self._at, self._all = start, size
        self._progress(start, size)

    def write(self, piece: bytes) -> None:
        """Write what came."""
        self._file.write(piece)
        self._at += len(piece)
        self._progress(self._at, self._all)

    def finish(self) -> None:
        """Have all of it on the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())


async def _of_part(file: IO[bytes], checking: Callable[[int], None]) -> tuple[int, str]:
    """Return the bytes of a part and their SHA-256, as they are on the disk."""
    found, size = hashlib.sha256(), 0
    file.seek(0)
    while piece := await asyncio.to_thread(file.read, _PIECE):
        await asyncio.to_thread(found.update, piece)
        size += len(piece)
        checking(size)
    return size, found.hexdigest()


def _fetched_by_another(destination: Path) -> HostError:
    return HostError(
        Reason.CONFLICT,
        tr("{destination} is being fetched already.", destination=destination),
        cause="Another transfer, maybe from another machine, goes to the same path.",
        fix=Fix(text="Wait for it or cancel it, or choose another folder with --to.", command="sndr jobs"),
        evidence={"path": str(destination)},
    )


def _no_answer(name: str, source: str) -> HostError:
    return HostError(
        Reason.SSH_FAILED,
        tr("{name} did not send {source} as it should.", name=name, source=source),
        cause="Its shell prints something else, or its python3 is very old.",
        fix=Fix(text="Look at the machine.", command=f"sndr host shell {name}"),
    )


def _refused(name: str, source: str, told: dict[str, Any]) -> HostError:
    return HostError(
        Reason.MODEL_FILE_MISSING,
        tr("{source} cannot be read on {name}.", source=source, name=name),
        cause=str(told.get("text", ""))[:300],
        fix=Fix(text="See what is there.", command=f"sndr host shell {name}"),
        evidence={"path": source, "host": name},
    )
