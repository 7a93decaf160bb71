"""A model of another machine on its way to this one: compared first, then fetched file by file."""

import asyncio
import json
from pathlib import Path, PurePosixPath
from typing import Any

from engine_host.core.errors import HostError
from engine_host.core.likely_causes import odd_words_over_ssh
from engine_host.core.outside import json_text
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr
from engine_host.protocol.remote.transfers import FileStanding, TransferFile
from engine_host.remote.run import SCRIPTS, RemoteScript, Runner
from engine_host.remote.scripts.receive_file import sizes
from engine_host.remote.transfer.download import download, hash_there
from engine_host.remote.transfer.files import Hashes, ModelFiles, understood
from engine_host.remote.transfer.pace import Told
from engine_host.remote.transfer.sending import Compared

_LIST = RemoteScript.read(SCRIPTS / "model_files.py")


async def files_there(hosts: Runner, name: str, model: str, path: str) -> ModelFiles:
    """Return the files of a model there. Raises HostError(model_file_missing), and of the connection."""
    outcome = await hosts.run(name, _LIST, json.dumps({"path": path}).encode() + b"\n", seconds=60.0)
    raw = outcome.need_success(tr("Looking for a model on {name}", name=name))
    try:
        told = json_text.parse_last_line(raw)
    except ValueError as error:
        raise HostError(
            Reason.SSH_FAILED,
            tr("{name} did not say which files a model has there.", name=name),
            cause=odd_words_over_ssh(),
            fix="Do it again.",
        ) from error
    return understood(told, model, name)


async def compared_here(
    hosts: Runner, name: str, source: ModelFiles, folder: Path, hashes: Hashes, told: Told
) -> Compared:
    """Return how the files stand here; one of the same size is hashed on both machines."""
    here: dict[str, Any] = await asyncio.to_thread(sizes, str(folder), [one.name for one in source.files])
    if "error" in here:
        raise HostError(
            Reason.NOT_WRITABLE,
            tr("{folder} cannot be written to.", folder=folder),
            cause=str(here.get("text", ""))[:300],
            fix="Choose a folder that is yours, with --to.",
            evidence={"path": str(folder)},
        )
    found = []
    for one, (whole, part) in zip(source.files, here["files"], strict=True):
        standing, have, digest = FileStanding.NEW, 0, None
        if whole == one.size:
            digest = await hashes.of(folder / one.name, told.reading(one.name, one.size))
            same = (
                await hash_there(
                    hosts, name, str(PurePosixPath(source.folder, source.read_as(one.name))), one.size
                )
                == digest
            )
            standing, have = (FileStanding.SAME, one.size) if same else (FileStanding.OTHER, 0)
        elif whole is not None:
            standing = FileStanding.OTHER
        if standing in {FileStanding.NEW, FileStanding.OTHER} and part and part <= one.size:
            have = part
            standing = FileStanding.PART if standing is FileStanding.NEW else standing
        digest = digest if standing is FileStanding.SAME else None
        found.append(TransferFile(name=one.name, size=one.size, standing=standing, there=have, sha256=digest))
    return Compared(str(folder), tuple(found), here["free"])


async def fetch(
    hosts: Runner, name: str, source: ModelFiles, file: TransferFile, folder: str, told: Told
) -> TransferFile:
    """Fetch one file; return it as it lies here."""
    digest = await download(
        hosts,
        name,
        str(PurePosixPath(source.folder, source.read_as(file.name))),
        Path(folder, file.name),
        told.carrying(file.name),
        told.reading(file.name, file.size),
        replace=file.standing is FileStanding.OTHER,
    )
    return file.model_copy(update={"standing": FileStanding.SAME, "there": file.size, "sha256": digest})
