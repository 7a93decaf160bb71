"""Fetch one file of the hub into the cache: it goes on where it stopped, and its hash has to be right."""

import asyncio
import contextlib
import errno
import hashlib
import os
import re
import stat
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar
from urllib.parse import quote

import httpx

from engine_host.core.errors import HostError
from engine_host.core.outside import answers
from engine_host.library.file_hashes import Hashes, Hashing, hash_file
from engine_host.library.hub.cache import RepositoryCache
from engine_host.library.hub.listing import HubFile
from engine_host.library.hub.requests import HubRequests
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr

_Value = TypeVar("_Value")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_PIECE = 1 << 20
_RANGE = re.compile(r"bytes (\d{1,19})-\d{1,19}/(\d{1,19}|\*)")
_STALL = 60.0
# Who sends less than this in that time does not mean to send the file.
_LEAST = 64 << 10


@dataclass(frozen=True, slots=True)
class Fetched:
    """A content that lies in the cache whole; `verified` is False where the hub told no hash of it.

    `hashes` is None where they were known before; `carried` counts bytes.
    """

    blob: str
    hashes: Hashes | None
    verified: bool
    carried: int


@dataclass(frozen=True, slots=True)
class Patience:
    """The times that are waited: for a little of a file, and before each other try, in seconds."""

    stall: float = _STALL
    before_tries: tuple[float, ...] = (1, 2, 4, 8, 15)


class FileFetcher:
    """Fetches files of one repository at one commit."""

    def __init__(
        self,
        requests: HubRequests,
        client: httpx.AsyncClient,
        cache: RepositoryCache,
        repository: str,
        commit: str,
        patience: Patience = Patience(),
    ) -> None:
        self._requests = requests
        self._client = client
        self._cache = cache
        self._repository = repository
        self._commit = commit
        self._patience = patience

    async def fetch(
        self,
        file: HubFile,
        known: Callable[[Path], Hashes | None],
        progress: Callable[[int], None],
        checking: Callable[[int], None],
    ) -> Fetched:
        """Bring a file to its end; `progress` and `checking` are told of the bytes that lie there.

        `known` are hashes of files here that were computed before. What was fetched stays for the next call,
        but for a content that is wrong. Raises HostError: disk_full, not_writable, conflict where another
        program fetches it, verification_failed, and of the requests.
        """
        name = file.hash or f"unnamed-{_short(f'{self._commit}/{file.name}')}"
        try:
            with self._cache.held(name) as ours:
                if not ours:
                    raise _fetched_by_another(file)
                if (here := await self._here(file, known, checking)) is not None:
                    progress(file.size)
                    return here
                part = self._cache.part(name)
                part.parent.mkdir(parents=True, exist_ok=True)
                with _opened(part) as opened:
                    fetched = await self._bring(file, part, opened, progress, checking)
                await _finished(os.replace, part, self._cache.blob(fetched.blob))
                return fetched
        except OSError as error:
            raise _of_the_disk(self._cache.folder, error) from error

    async def _here(
        self,
        file: HubFile,
        known: Callable[[Path], Hashes | None],
        checking: Callable[[int], None],
    ) -> Fetched | None:
        """Return a content that somebody put here before, once its hash is right."""
        if file.hash is None or _size(self._cache.blob(file.hash)) != file.size:
            return None
        blob, stopped = self._cache.blob(file.hash), threading.Event()
        if (before := known(blob)) is not None and before.is_called(file.hash):
            return Fetched(file.hash, None, True, 0)
        loop = asyncio.get_running_loop()

        def tell(done: int) -> None:
            loop.call_soon_threadsafe(checking, done)

        try:
            hashes = await asyncio.to_thread(hash_file, blob, tell, stopped.is_set)
        finally:
            stopped.set()
        if hashes is None or not hashes.is_called(file.hash):
            return None
        return Fetched(file.hash, hashes, True, 0)

    async def _bring(
        self,
        file: HubFile,
        part: Path,
        opened: IO[bytes],
        progress: Callable[[int], None],
        checking: Callable[[int], None],
    ) -> Fetched:
        written = _Part(file, opened)
        await written.read_again(checking)
        failed = 0
        while written.size < file.size:
            problem: Exception | None = None
            before = written.size
            try:
                await self._some(file, written, progress)
            except (httpx.HTTPError, TimeoutError) as error:
                problem = error
            except HostError as error:
                # Of a hub that is overloaded for a moment; every other refusal means what it says.
                if error.reason is not Reason.DOWNLOAD_FAILED:
                    raise
                problem = error
            if written.size >= file.size:
                break
            # A long line may break often, as long as it brings something.
            failed = 1 if written.size - before >= _LEAST else failed + 1
            waits = self._patience.before_tries
            if failed > len(waits):
                if isinstance(problem, HostError):
                    raise problem
                raise _broken(file, written.size, problem) from problem
            await asyncio.sleep(waits[failed - 1])
        await _finished(written.flush)
        if not written.is_right:
            await _finished(part.unlink)
            raise HostError(
                Reason.VERIFICATION_FAILED,
                tr("{file} came damaged from the hub, and was removed.", file=file.name),
                cause="Its hash is another than the hub says: a proxy changed it, a disk is faulty, or the "
                "file there is not the one of the list.",
                fix="Download it again.",
                evidence={"file": file.name, "wanted": file.hash, "found": written.hashes.sha256},
            )
        verified = file.hash is not None
        return Fetched(file.hash or written.hashes.sha256, written.hashes, verified, written.carried)

    async def _some(self, file: HubFile, written: "_Part", progress: Callable[[int], None]) -> None:
        """Take what one answer gives. Raises HostError, httpx.HTTPError, TimeoutError."""
        place = f"{quote(self._commit, safe='')}/{quote(file.name)}"
        address = f"{self._requests.endpoint}/{self._repository}/resolve/{place}"
        begun = written.size
        headers = {"Range": f"bytes={begun}-"} if begun else {}
        async with (
            asyncio.timeout(self._patience.stall) as deadline,
            self._requests.open(
                self._client, address, self._repository, self._commit, headers, frozenset({416})
            ) as (answer, commit),
        ):
            self._check_commit(file, commit)
            if answer.status_code == 416 or (begun and not _continues(answer, begun)):
                # This server does not go on in the middle: what is here begins again.
                await _finished(written.begin_again)
                begun = 0
                if answer.status_code == 416:
                    return
            answers.check_plain(answer)
            progress(written.size)
            async for piece in self._pieces(answer, file.size - begun, deadline):
                await _finished(written.add, piece)
                progress(written.size)

    async def _pieces(
        self, answer: httpx.Response, most: int, deadline: asyncio.Timeout
    ) -> AsyncIterator[bytes]:
        """Yield the body in pieces of a size that is worth a thread, and no more than the file has."""
        kept, since, loop = bytearray(), 0, asyncio.get_running_loop()
        told = loop.time()
        try:
            async for some in answer.aiter_bytes():
                taken = some[: max(0, most)]
                most -= len(some)
                kept += taken
                since += len(some)
                if since >= _LEAST:
                    since = 0
                    deadline.reschedule(loop.time() + self._patience.stall)
                if len(kept) >= _PIECE or loop.time() - told > 0.5:
                    yield bytes(kept)
                    kept, told = bytearray(), loop.time()
                if most <= 0:
                    break
        except httpx.HTTPError:
            # What came before a line broke counts.
            if kept:
                yield bytes(kept)
            raise
        if kept:
            yield bytes(kept)

    def _check_commit(self, file: HubFile, commit: str) -> None:
        if commit and commit != self._commit:
            raise HostError(
                Reason.CONFLICT,
                tr(
                    "{repository} changed on the hub: {file} is of another commit now.",
                    repository=self._repository,
                    file=file.name,
                ),
                cause=tr(
                    "Asked was {commit}, answered {commit2}.", commit=self._commit[:12], commit2=commit[:12]
                ),
                fix="List its files again, and choose from what is there now.",
                evidence={"wanted": self._commit, "found": commit},
            )


class _Part:
    """The content as it grows, with its hashes."""

    def __init__(self, file: HubFile, opened: IO[bytes]) -> None:
        self._file = file
        self._opened = opened
        self.size = self.carried = 0
        self._hashing = Hashing(file.size)

    @property
    def hashes(self) -> Hashes:
        """The hashes of what is here."""
        return self._hashing.hashes

    @property
    def is_right(self) -> bool:
        """Tell whether it has the hash that the hub says; True where it says none."""
        if self.size != self._file.size:
            return False
        return self._file.hash is None or self.hashes.is_called(self._file.hash)

    async def read_again(self, checking: Callable[[int], None]) -> None:
        """Hash what an earlier try left."""
        if os.fstat(self._opened.fileno()).st_size > self._file.size:
            await _finished(self.begin_again)
        self._opened.seek(0)
        while piece := await _finished(self._opened.read, _PIECE):
            await _finished(self._take, piece)
            checking(self.size)

    def begin_again(self) -> None:
        """Throw away what is here."""
        self._opened.seek(0)
        self._opened.truncate()
        self.size = 0
        self._hashing = Hashing(self._file.size)

    def add(self, piece: bytes) -> None:
        """Write what came."""
        self._opened.write(piece)
        self._opened.flush()
        self.carried += len(piece)
        self._take(piece)

    def flush(self) -> None:
        """Have all of it on the disk."""
        self._opened.flush()
        os.fsync(self._opened.fileno())

    def _take(self, piece: bytes) -> None:
        self._hashing.add(piece)
        self.size += len(piece)


async def _finished(work: Callable[..., _Value], *given: Any) -> _Value:
    """Do work in a thread to its end, also when the task is cancelled: its file stays open."""
    task = asyncio.ensure_future(asyncio.to_thread(work, *given))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


@contextlib.contextmanager
def _opened(part: Path) -> Any:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(part, flags, 0o644), "r+b") as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise OSError(errno.EINVAL, f"{part} is no regular file")
        yield opened


def _size(path: Path) -> int | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def _continues(answer: httpx.Response, begun: int) -> bool:
    said = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
    return answer.status_code == 206 and said is not None and int(said[1]) == begun


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def _broken(file: HubFile, size: int, error: Exception | None) -> HostError:
    away = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
    return HostError(
        Reason.OFFLINE if away else Reason.DOWNLOAD_FAILED,
        tr(
            "{file} stopped coming: {size:,} of {size2:,} bytes are here, and stay.",
            file=file.name,
            size=size,
            size2=file.size,
        ),
        cause=f"{type(error).__name__}: {error}".rstrip(": ") + "."
        if error is not None
        else "The hub ended its answer too early, again and again.",
        fix=Fix(text="Go on with it later: what is here is not fetched again."),
        evidence={"file": file.name, "here": size, "size": file.size},
    )


def _fetched_by_another(file: HubFile) -> HostError:
    return HostError(
        Reason.CONFLICT,
        tr("{file} is being downloaded already.", file=file.name),
        cause="Another program, or another download of this one, has it.",
        fix=Fix(text="Wait for it, then go on.", command="sndr jobs"),
        evidence={"file": file.name},
    )


def _of_the_disk(folder: Path, error: OSError) -> HostError:
    full = error.errno in _FULL
    return HostError(
        Reason.DISK_FULL if full else Reason.NOT_WRITABLE,
        tr("The disk is full: the download to {folder} stopped, and what is here stays.", folder=folder)
        if full
        else tr("{folder} cannot be written: {error}.", folder=folder, error=error.strerror or error),
        fix="Free some space, or delete models (`sndr models remove`), then go on."
        if full
        else "Make it writable, or set HF_HOME to a folder of yours.",
        evidence={"path": str(folder), "errno": error.errno},
    )
