"""The models of this machine: what the scan found, with the metadata of each file, remembered."""

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine_host._errors import HostError
from engine_host.library.gguf import GgufInfo, read_gguf
from engine_host.library.scan import FoundModel
from engine_host.protocol.errors import Reason
from engine_host.protocol.models import ModelFile, ModelOrigin

_ORDER = [ModelOrigin.BUNDLED, ModelOrigin.FOLDER, ModelOrigin.OTHER_PROGRAM]


@dataclass(frozen=True)
class ShelvedModel:
    """A model as the window lists it, with the metadata read from its file."""

    file: ModelFile
    info: GgufInfo


class Shelf:
    """Every model file known here; a file is read again only when it changed."""

    def __init__(self, scan: Callable[[], Sequence[FoundModel]]) -> None:
        """`scan` may be slow: it runs in a thread."""
        self._scan = scan
        self._read: dict[Path, tuple[tuple[int, int], GgufInfo | HostError]] = {}
        self._files: dict[str, ModelFile] = {}
        self._scanned = False
        self._scanning = asyncio.Lock()

    async def models(self, *, rescan: bool = False) -> tuple[ModelFile, ...]:
        """The models, bundled ones first, then by name; looked for at the first call and when asked."""
        async with self._scanning:
            if rescan or not self._scanned:
                found = await asyncio.to_thread(self._look)
                self._files = found
                self._scanned = True
        return tuple(
            sorted(self._files.values(), key=lambda file: (_ORDER.index(file.origin), file.name.lower()))
        )

    async def find(self, wanted: str) -> ShelvedModel:
        """A model by id, name or path.

        Raises HostError(model_file_missing), HostError(not_gguf), HostError(gguf_truncated) and whatever
        else reading the file finds.
        """
        if wanted.startswith(("/", "~")) or wanted.endswith(".gguf"):
            return await asyncio.to_thread(self._one, Path(wanted))
        await self.models()
        matches = [file for file in self._files.values() if wanted in {file.id, file.name}]
        if not matches:
            # Perhaps it was put there since the last look.
            await self.models(rescan=True)
            matches = [file for file in self._files.values() if wanted in {file.id, file.name}]
        if not matches:
            raise HostError(
                Reason.MODEL_FILE_MISSING,
                f"There is no model {wanted!r} on this machine.",
                cause="Known are: " + (", ".join(sorted(self._files)) or "none") + ".",
                fix="Give the path of a GGUF file, or add its folder in the settings (models.folders).",
                evidence={"wanted": wanted},
            )
        return await asyncio.to_thread(self._one, Path(matches[0].path), matches[0])

    def known(self, path: str) -> ShelvedModel | None:
        """What is remembered of a file, without looking at the disk."""
        remembered = self._read.get(Path(path))
        if remembered is None or isinstance(remembered[1], HostError):
            return None
        file = next((file for file in self._files.values() if file.path == path), None)
        info = remembered[1]
        return ShelvedModel(file or _describe(info, ModelOrigin.FOLDER, str(info.path.parent)), info)

    def _one(self, path: Path, file: ModelFile | None = None) -> ShelvedModel:
        path = path.expanduser()
        info = self._metadata(path)
        if isinstance(info, HostError):
            raise info
        return ShelvedModel(file or _describe(info, ModelOrigin.FOLDER, str(path.parent)), info)

    def _look(self) -> dict[str, ModelFile]:
        files: dict[str, ModelFile] = {}
        for found in self._scan():
            info = self._metadata(found.path)
            file = (
                _broken(found, info)
                if isinstance(info, HostError)
                else _describe(info, found.origin, found.found_in, found.name)
            )
            number, wanted = 1, file.id
            while file.id in files:
                number += 1
                file = file.model_copy(update={"id": f"{wanted}-{number}"})
            files[file.id] = file
        return files

    def _metadata(self, path: Path) -> GgufInfo | HostError:
        try:
            state = path.stat()
        except OSError as error:
            return HostError(
                Reason.MODEL_FILE_MISSING,
                f"The model file {path} cannot be opened: {error.strerror}.",
                cause="It was moved or removed, or the path is misspelt.",
                fix="Check the path; `sndr models` lists what was found.",
                evidence={"path": str(path), "errno": error.errno},
            )
        mark = (state.st_size, state.st_mtime_ns)
        remembered = self._read.get(path)
        if remembered is None or remembered[0] != mark:
            try:
                read: GgufInfo | HostError = read_gguf(path)
            except HostError as error:
                read = error
            remembered = self._read[path] = (mark, read)
        return remembered[1]


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.") or "model"


def _describe(info: GgufInfo, origin: ModelOrigin, found_in: str, stem: str | None = None) -> ModelFile:
    name = _slug(stem or re.sub(r"-\d{5}-of-\d{5}$", "", info.path.stem))
    # The quantisation is shown beside the name; in the public model id it would only be noise.
    short = re.sub(r"-(i?q\d[a-z0-9.-]*|f16|f32|bf16)$", "", name)
    return ModelFile(
        id=name,
        name=short or name,
        path=str(info.path),
        origin=origin,
        found_in=found_in,
        size=info.size,
        format="GGUF",
        architecture=info.architecture,
        quantization=info.quantization,
        parameters=info.parameters,
        context=info.context,
        mtp_layers=info.mtp_layers,
        head_dim=info.head_dim,
        embedding_only=info.embedding_only,
        chat_template=info.chat_template,
        licence=info.licence,
    )


def _broken(found: FoundModel, error: HostError) -> ModelFile:
    name = _slug(found.name)
    return ModelFile(
        id=name,
        name=name,
        path=str(found.path),
        origin=found.origin,
        found_in=found.found_in,
        size=found.size,
        format="GGUF",
        problem=error.problem,
    )
