"""A model of this machine on its way to another one: compared first, then sent file by file."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeGuard

from engine_host.core.errors import HostError
from engine_host.core.likely_causes import odd_words_over_ssh
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr
from engine_host.protocol.remote.transfers import FileStanding, TransferFile
from engine_host.remote.run import Runner
from engine_host.remote.scripts.model_files import listing
from engine_host.remote.transfer.files import Hashes, ModelFiles, understood
from engine_host.remote.transfer.pace import Told
from engine_host.remote.upload import RECEIVE, hashing_seconds, told_by, upload


@dataclass(frozen=True)
class Compared:
    """The files of a transfer as they stand where they are to go; `free` bytes are there."""

    folder: str
    files: tuple[TransferFile, ...]
    free: int | None

    @property
    def left(self) -> int:
        """The bytes that have to be carried."""
        return sum(one.size - one.there for one in self.files)


async def files_here(model: str, path: Path) -> ModelFiles:
    """Return the files of a model of this machine. Raises HostError(model_file_missing)."""
    try:
        told = await asyncio.to_thread(listing, str(path))
    except OSError as error:
        told = {"error": "refused", "text": str(error)}
    return understood(told, model, tr("this machine"))


async def compared_there(
    hosts: Runner, name: str, source: ModelFiles, folder: str, hashes: Hashes, told: Told
) -> Compared:
    """Return how the files stand there; one of the same size is hashed on both machines."""
    asked = {"folder": folder, "names": [one.name for one in source.files]}
    outcome = await hosts.run(name, RECEIVE, _line(asked), seconds=60.0)
    there = told_by(name, folder, outcome)
    place, free = str(there.get("folder", folder)), there.get("free")
    kept = there.get("files")
    if not isinstance(kept, list) or len(kept) != len(source.files):
        raise HostError(
            Reason.SSH_FAILED,
            tr("{name} did not say what is there.", name=name),
            cause=odd_words_over_ssh(),
            fix="Do it again.",
            evidence={"folder": folder},
        )
    found = []
    for one, sizes in zip(source.files, kept, strict=True):
        whole, part = (sizes[0], sizes[1]) if isinstance(sizes, list) and len(sizes) == 2 else (None, None)
        standing, have, digest = FileStanding.NEW, 0, None
        if whole == one.size:
            digest = await hashes.of(
                Path(source.folder, source.read_as(one.name)), told.reading(one.name, one.size)
            )
            same = await _is_there(hosts, name, f"{place}/{one.name}", one.size, digest)
            standing, have = (FileStanding.SAME, one.size) if same else (FileStanding.OTHER, 0)
        elif whole is not None:
            standing = FileStanding.OTHER
        if standing in {FileStanding.NEW, FileStanding.OTHER} and _is_size(part) and part <= one.size:
            have = part
            standing = FileStanding.PART if standing is FileStanding.NEW else standing
        found.append(TransferFile(name=one.name, size=one.size, standing=standing, there=have, sha256=digest))
    return Compared(place, tuple(found), free if isinstance(free, int) else None)


async def send(
    hosts: Runner, name: str, source: ModelFiles, file: TransferFile, folder: str, hashes: Hashes, told: Told
) -> TransferFile:
    """Send one file; return it as it lies there."""
    path = Path(source.folder, source.read_as(file.name))
    digest = file.sha256 or await hashes.of(path, told.reading(file.name, file.size))
    await upload(
        hosts,
        name,
        path,
        str(PurePosixPath(folder, file.name)),
        progress=told.carrying(file.name),
        measured=(file.size, digest),
    )
    return file.model_copy(update={"standing": FileStanding.SAME, "there": file.size, "sha256": digest})


async def _is_there(hosts: Runner, name: str, path: str, size: int, digest: str) -> bool:
    asked = {"path": path, "size": size, "sha256": digest, "ask": True}
    outcome = await hosts.run(name, RECEIVE, _line(asked), seconds=hashing_seconds(size))
    return told_by(name, path, outcome).get("done") is True


def _is_size(part: object) -> TypeGuard[int]:
    return isinstance(part, int) and not isinstance(part, bool) and part > 0


def _line(asked: dict[str, Any]) -> bytes:
    return json.dumps(asked).encode() + b"\n"
