"""The files of a model on one of both machines, and how the other one has them already."""

import asyncio
import hashlib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from engine_host.core.errors import HostError
from engine_host.core.outside import files
from engine_host.library.scan import hub_name
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.text import FileName, Line

_PIECE = 1 << 20
_MOST_KNOWN = 4000
_PART = re.compile(r"-\d{5}-of-\d{5}$")
_NAME: TypeAdapter[str] = TypeAdapter(FileName)


class ModelPart(BaseModel):
    """One file of a model: its path below the model's folder, and its bytes."""

    model_config = ConfigDict(defer_build=True)

    name: FileName
    size: Annotated[int, Field(ge=0, lt=1 << 60)]


class ModelFiles(BaseModel):
    """All files of a model; `start` is the one that an engine is started with, empty for the folder.

    `blob` is the name of its one file where that is none that could be carried.
    """

    model_config = ConfigDict(defer_build=True)

    folder: Annotated[Line, Field(max_length=4096)]
    files: tuple[ModelPart, ...] = Field(min_length=1, max_length=2000)
    start: str = ""
    blob: str = ""

    def read_as(self, name: str) -> str:
        """Return the name under which a file lies where it comes from."""
        return self.blob if self.blob and name == self.start else name

    @property
    def size(self) -> int:
        """The bytes of all of them."""
        return sum(one.size for one in self.files)

    @property
    def name(self) -> str:
        """The name of the folder that these files have to themselves elsewhere; empty for a single file."""
        if not self.start:
            folder = Path(self.folder)
            return PurePosixPath(hub_name(folder) or folder.name).name
        return _PART.sub("", PurePosixPath(self.start).stem) if len(self.files) > 1 else ""

    def called(self, name: str) -> "ModelFiles":
        """Return the same with another name of its one file, which a store of blobs did not name."""
        renamed = (ModelPart(name=name, size=self.files[0].size),)
        return self.model_copy(update={"files": renamed, "start": name, "blob": self.start})


def _check_names(found: ModelFiles) -> None:
    """Raise ValueError for names that are not of one model, or that could write where nobody looks."""
    names = {one.name for one in found.files}
    if len(names) != len(found.files) or (found.start and found.start not in names) or found.blob:
        raise ValueError("a name in it is there twice, or is none of its files")
    if found.name or len(found.files) > 1 or not found.start:
        # The machine chooses this folder as well: of "/models/.." or "...gguf" it would be the one above.
        if "/" in _NAME.validate_python(found.name):
            raise ValueError("its folder is more than one name")
        names.add(found.name)
    if any(part.startswith(".") for name in names for part in name.split("/")):
        raise ValueError("a name in it begins with a dot")


def understood(told: Mapping[str, Any], model: str, where: str) -> ModelFiles:
    """Return the files that a machine lists. Raises HostError: model_file_missing, unsupported."""
    if (failure := told.get("error")) is None:
        try:
            found = ModelFiles.model_validate(told)
            _check_names(found)
        except (ValidationError, ValueError) as error:
            raise HostError(
                Reason.UNSUPPORTED,
                tr(
                    "The files of {model} on {where} cannot be carried.", model=repr(model[:200]), where=where
                ),
                cause="A name among them is no plain text, leads out of its folder, or begins with a dot.",
                fix=Fix(text="Rename them there."),
                evidence={"path": str(told.get("folder", ""))[:300], "error": str(error)[:500]},
            ) from error
        return found
    path = str(told.get("path", ""))[:300]
    causes = {
        "missing": f"There is no {path}.",
        "none": f"{path} is neither a GGUF file nor a folder with a config.json.",
        "several": f"There are several models in {path}: say which.",
        "many": f"There are too many files in {path}.",
    }
    raise HostError(
        Reason.UNSUPPORTED if failure == "many" else Reason.MODEL_FILE_MISSING,
        tr("{model} is no model on {where} that could be carried.", model=repr(model[:200]), where=where),
        cause=causes.get(str(failure), str(told.get("text", ""))[:300]),
        fix=Fix(text="Give the path of a GGUF file or of a folder with safetensors."),
        evidence={"path": path, "error": str(failure)[:100], "found": told.get("found", [])},
    )


@dataclass(frozen=True)
class _Mark:
    """The marks by which a file is known again while nobody writes to it."""

    path: str
    size: int
    changed: int
    number: int


class Hashes:
    """SHA-256 of files here; a file is read again only when it changed."""

    def __init__(self) -> None:
        self._known: dict[_Mark, str] = {}

    async def of(self, path: Path, progress: Callable[[int], None] = lambda _done: None) -> str:
        """Return the hash of a file; `progress` is told of the bytes that were read. Raises HostError."""
        try:
            with files.open_regular(path) as file:
                about = os.fstat(file.fileno())
                mark = _Mark(str(path), about.st_size, about.st_mtime_ns, about.st_ino)
                if mark in self._known:
                    progress(about.st_size)
                    return self._known[mark]
                found, done = hashlib.sha256(), 0
                while piece := await asyncio.to_thread(file.read, _PIECE):
                    await asyncio.to_thread(found.update, piece)
                    done += len(piece)
                    progress(done)
        except OSError as error:
            raise HostError(
                Reason.MODEL_FILE_MISSING,
                tr("{path} cannot be read: {error}.", path=path, error=error.strerror or error),
                cause="It was moved or removed, or its disk is faulty.",
                fix="Fetch the model again.",
                evidence={"path": str(path), "errno": error.errno},
            ) from error
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[mark] = found.hexdigest()
        return self._known[mark]
