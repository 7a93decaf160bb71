"""The models of this machine: what the scan found, with the metadata of each, remembered."""

import asyncio
import os
import re
import stat
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine_host.core.did_you_mean import meant_or
from engine_host.core.errors import HostError
from engine_host.core.outside import files
from engine_host.library.checkpoint import CONFIG, CheckpointInfo, files_fingerprint, read_checkpoint
from engine_host.library.gguf import GgufInfo, read_gguf
from engine_host.library.scan import FoundModel, hub_name
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.models import ModelFile, ModelOrigin

ModelInfo = GgufInfo | CheckpointInfo
"""A model as its files describe it, whichever form they have."""

_LONGEST_NAME = 4096
_GIVE_A_PATH = Fix(
    text="Give the path of a GGUF file or of a folder with safetensors, or add its folder in the settings "
    "(models.folders)."
)
_ORDER = [ModelOrigin.BUNDLED, ModelOrigin.FOLDER, ModelOrigin.OTHER_PROGRAM]


@dataclass(frozen=True)
class IndexedModel:
    """A model as the window lists it, with the metadata read from its files."""

    file: ModelFile
    info: ModelInfo


class ModelIndex:
    """Every model file known here; a file is read again only when it changed."""

    def __init__(self, scan: Callable[[], Sequence[FoundModel]]) -> None:
        """`scan` may be slow: it runs in a thread."""
        self._scan = scan
        self._read: dict[Path, tuple[object, ModelInfo | HostError]] = {}
        self._files: dict[str, ModelFile] = {}
        self._unlisted: dict[str, IndexedModel] = {}
        """Those that no scan found, by path, as they were described for the one file that was read."""
        self._scanned = False
        self._scanning = asyncio.Lock()

    async def models(self, *, rescan: bool = False) -> tuple[ModelFile, ...]:
        """Return the models, bundled ones first, then by name; scans at the first call and on `rescan`."""
        async with self._scanning:
            if rescan or not self._scanned:
                found = await asyncio.to_thread(self._scan_models)
                self._files = found
                self._scanned = True
        return tuple(
            sorted(self._files.values(), key=lambda file: (_ORDER.index(file.origin), file.name.lower()))
        )

    async def find(self, name: str, formats: Collection[str] = ()) -> IndexedModel:
        """A model by id, name or path; of several of one name the first of these formats, if any.

        Raises HostError(model_file_missing), HostError(not_gguf), HostError(gguf_truncated) and whatever
        else reading the file finds.
        """
        if len(name) > _LONGEST_NAME or "\0" in name or not files.is_text(Path(name)):
            raise HostError(
                Reason.MODEL_FILE_MISSING,
                tr("{name} is no name and no path of a model.", name=repr(name[:80])),
                fix="Give an id that `sndr models` lists, or a path.",
                evidence={"wanted": name[:80]},
            )
        if name.startswith(("/", "~")) or name.endswith(".gguf"):
            return await asyncio.to_thread(self._at, files.expanded(name))
        file = _named(await self.models(), name, formats)
        if file is None:
            # Perhaps it was put there since the last look.
            file = _named(await self.models(rescan=True), name, formats)
        if file is None:
            raise HostError(
                Reason.MODEL_FILE_MISSING,
                tr("There is no model {name}.", name=repr(name)),
                cause=tr("Known are: {names}.", names=", ".join(sorted(self._files)) or tr("none")),
                fix=meant_or(_GIVE_A_PATH, name, self._files),
                evidence={"wanted": name},
            )
        return await asyncio.to_thread(self._indexed, Path(file.path), file)

    def has(self, name: str) -> bool:
        """Return True for the id of a model that was here at the last look, without looking again."""
        return name in self._files

    def known(self, path: str) -> IndexedModel | None:
        """Return the indexed model of a path without looking at the disk; None if it was not read or is
        damaged."""
        remembered = self._read.get(Path(path))
        if remembered is None or isinstance(remembered[1], HostError):
            return None
        file = next((file for file in self._files.values() if file.path == path), None)
        info = remembered[1]
        if file is not None:
            return IndexedModel(file, info)
        # Asked for with each request: the very same one is told from another without a look into it.
        before = self._unlisted.get(path)
        if before is None or before.info is not info:
            file = _describe(info, ModelOrigin.FOLDER, str(info.path.parent))
            before = self._unlisted[path] = IndexedModel(file, info)
        return before

    def _at(self, path: Path) -> IndexedModel:
        return self._indexed(_model_path(path))

    def _indexed(self, path: Path, file: ModelFile | None = None) -> IndexedModel:
        info = self._metadata(path)
        if isinstance(info, HostError):
            raise info
        if file is not None and file.problem is not None:
            # It was mended since the scan.
            now = _describe(info, file.origin, file.found_in)
            file = now.model_copy(update={"id": file.id, "name": file.name})
            self._files[file.id] = file
        return IndexedModel(file or _describe(info, ModelOrigin.FOLDER, str(path.parent)), info)

    def _scan_models(self) -> dict[str, ModelFile]:
        listed: dict[str, ModelFile] = {}
        for found in self._scan():
            info = self._metadata(found.path)
            file = (
                _broken(found, info)
                if isinstance(info, HostError)
                else _describe(info, found.origin, found.found_in, found.name)
            )
            number, base_id = 1, file.id
            if isinstance(info, CheckpointInfo) and any(
                base_id in {one.id, one.name} for one in listed.values()
            ):
                # The same model in another form: the name alone means the one that was there first.
                base_id = f"{base_id}-{info.format}"
                file = file.model_copy(update={"id": base_id})
            while file.id in listed:
                number += 1
                file = file.model_copy(update={"id": f"{base_id}-{number}"})
            listed[file.id] = file
        return listed

    def _metadata(self, path: Path) -> ModelInfo | HostError:
        if not files.is_text(path):
            return HostError(
                Reason.UNSUPPORTED,
                tr("The name of {shown} is no text.", shown=_shown(path)),
                cause="It was written in another encoding than UTF-8.",
                fix="Rename it.",
            )
        try:
            state = path.stat()
            folder = stat.S_ISDIR(state.st_mode)
            mark: object = files_fingerprint(path) if folder else (state.st_size, state.st_mtime_ns)
        except OSError as error:
            return HostError(
                Reason.MODEL_FILE_MISSING,
                tr("The model {path} cannot be opened: {error}.", path=path, error=error.strerror),
                cause="It was moved or removed, or the path is misspelt.",
                fix="Check the path; `sndr models` lists what was found.",
                evidence={"path": str(path), "errno": error.errno},
            )
        except HostError as error:
            return error
        remembered = self._read.get(path)
        if remembered is None or remembered[0] != mark:
            try:
                read: ModelInfo | HostError = read_checkpoint(path) if folder else read_gguf(path)
            except HostError as error:
                read = error
            remembered = self._read[path] = (mark, read)
        return remembered[1]


def _named(files: Sequence[ModelFile], name: str, formats: Collection[str]) -> ModelFile | None:
    """The model of this id or name; `org/model` is an id too."""
    same = [file for file in files if name in {file.id, file.name}]
    same = same or [file for file in files if file.id == _slug(name)]
    return min(same, key=lambda file: (file.format not in formats, file.id != name), default=None)


def _model_path(path: Path) -> Path:
    """Return the model that a path means: a file's checkpoint, or the GGUF of a folder with only one."""
    # These functions answer False where Path's methods raise, as for a folder that may not be entered.
    if path.suffix in {".safetensors", ".json"} and os.path.isfile(path.parent / CONFIG):
        return path.parent
    if os.path.isdir(path) and not os.path.isfile(path / CONFIG):
        inside = sorted(path.glob("*.gguf"))
        if len(inside) == 1:
            return inside[0]
    return path


def _shown(path: Path) -> str:
    """A path for people and for the wire, with marks for what is no text in it."""
    return str(path).encode("utf-8", "replace").decode("utf-8")


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.") or "model"


def _describe(info: ModelInfo, origin: ModelOrigin, found_in: str, found: str | None = None) -> ModelFile:
    """The list entry of a model; `found` is the name that the scan gave it."""
    if isinstance(info, CheckpointInfo):
        full_name = found or hub_name(info.path) or info.path.name
        name, short = _slug(full_name), _slug(full_name.rpartition("/")[2])
        form = info.format
    else:
        name = _slug(found or re.sub(r"-\d{5}-of-\d{5}$", "", info.path.stem))
        # The quantisation is shown beside the name; in the public model id it would only be noise.
        short = re.sub(r"-(i?q\d[a-z0-9.-]*|f16|f32|bf16)$", "", name) or name
        form = "GGUF"
    return ModelFile(
        id=name,
        name=short,
        path=str(info.path),
        origin=origin,
        found_in=found_in,
        size=info.size,
        format=form,
        architecture=info.architecture,
        quantization=info.quantization,
        parameters=info.parameters,
        context=info.context,
        mtp_layers=info.mtp_layers,
        head_dim=info.head_dim,
        embedding_only=info.embedding_only,
        chat_template=bool(info.chat_template),
        licence=info.licence,
    )


def _broken(found: FoundModel, error: HostError) -> ModelFile:
    return ModelFile(
        id=_slug(found.name),
        name=_slug(found.name.rpartition("/")[2]),
        path=_shown(found.path),
        origin=found.origin,
        found_in=found.found_in,
        size=found.size,
        format="safetensors" if os.path.isdir(found.path) else "GGUF",
        problem=error.problem,
    )
