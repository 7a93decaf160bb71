"""Files of a repository that are downloaded together: one quantisation with its parts, or a checkpoint."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from engine_host.library.hub.configs import WEIGHTS
from engine_host.library.hub.listing import HubFile

CHECKPOINT = "safetensors"
_PART = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$", re.IGNORECASE)
_PROJECTOR = re.compile(r"(^|[-_.])mmproj", re.IGNORECASE)
_DRAFTER = re.compile(r"(^|[-_.])(draft|drafter|mtp-head|eagle3?)([-_.]|$)", re.IGNORECASE)
# Importance matrices and bare vocabularies are no models.
_NO_MODEL = re.compile(r"(^|[-_.])(imatrix|ggml-vocab)", re.IGNORECASE)
_QUANTIZATION = re.compile(
    r"(?<![a-z0-9])((?:ud-)?(?:i?q\d(?:_[a-z0-9]+)*|tq\d_\d|mxfp4(?:_moe)?|nvfp4|bf16|f16|f32|fp16|fp32))(?![a-z0-9])",
    re.IGNORECASE,
)
# Beside the weights: how they are read, how text becomes tokens, what may be done with them. No code.
_BESIDE = re.compile(
    r"[^/]+\.(json|jinja|tiktoken|model)|(merges|vocab|added_tokens)\.txt|LICEN[CS]E[^/]*", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Choice:
    """Files that are one model; `companions` go with it: projectors of images and sound, drafters."""

    id: str
    label: str
    format: str
    files: tuple[HubFile, ...]
    companions: tuple[tuple[str, HubFile], ...] = ()

    @property
    def size(self) -> int:
        """Bytes of its own files."""
        return sum(file.size for file in self.files)

    @property
    def start(self) -> str:
        """The file that an engine is given; empty for a checkpoint, whose folder it is."""
        return "" if self.id == CHECKPOINT else self.files[0].name


def choices_of(files: Sequence[HubFile]) -> tuple[Choice, ...]:
    """Return what of these files can be downloaded, the smallest first; a set with a part missing is not."""
    ggufs = [file for file in files if file.name.lower().endswith(".gguf")]
    companions = tuple(
        (kind, file) for file in ggufs if (kind := _companion(file.name)) is not None and not _part(file.name)
    )
    sets: dict[str, list[HubFile]] = {}
    for file in ggufs:
        if _companion(file.name) is None and not _NO_MODEL.search(PurePosixPath(file.name).name):
            sets.setdefault(_PART.sub(".gguf", file.name), []).append(file)
    found = [
        Choice(name, _label(name), "GGUF", tuple(parts), _beside(name, companions))
        for name, parts in sets.items()
        if _whole(parts)
    ]
    if (checkpoint := _checkpoint(files)) is not None:
        found.append(checkpoint)
    return tuple(sorted(found, key=lambda one: (one.size, one.id)))


def _checkpoint(files: Sequence[HubFile]) -> Choice | None:
    names = {file.name for file in files}
    weights = [file for file in files if WEIGHTS.fullmatch(file.name)]
    if not weights or "config.json" not in names:
        return None
    beside = [file for file in files if _BESIDE.fullmatch(file.name) and file not in weights]
    return Choice(CHECKPOINT, "safetensors", "safetensors", (*weights, *beside))


def _whole(parts: Sequence[HubFile]) -> bool:
    numbers = [_PART.search(file.name) for file in parts]
    if len(parts) == 1 and numbers[0] is None:
        return True
    known = [(int(found[1]), int(found[2])) for found in numbers if found is not None]
    return [number for number, _ in known] == list(range(1, len(parts) + 1)) and all(
        of == len(parts) for _, of in known
    )


def _part(name: str) -> bool:
    return _PART.search(name) is not None


def _companion(name: str) -> str | None:
    short = PurePosixPath(name).name
    if _PROJECTOR.search(short):
        return "mmproj"
    return "drafter" if _DRAFTER.search(short) else None


def _beside(name: str, companions: Sequence[tuple[str, HubFile]]) -> tuple[tuple[str, HubFile], ...]:
    """Return the companions of a model: those of its folder or of the folder above all."""
    folders = {PurePosixPath(name).parent, PurePosixPath()}
    return tuple(one for one in companions if PurePosixPath(one[1].name).parent in folders)


def _label(name: str) -> str:
    path = PurePosixPath(name)
    for text in (path.stem, path.parent.name):
        if found := _QUANTIZATION.findall(text):
            return str(found[-1]).upper()
    return path.stem
