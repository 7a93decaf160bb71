"""Match the files of this machine with the weights of the catalogue."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from engine_host.protocol.catalog import Variant, WeightFile
from engine_host.protocol.models import ModelFile

_FORMATS = {"gguf": "GGUF", "safetensors": "safetensors"}
# Hugging Face's cache, and Ollama, whose files are called after their hash.
_HUB_FOLDER = re.compile(r"/models--(?P<name>[^/]+)/snapshots/")
_BLOB = re.compile(r"sha256-(?P<hash>[0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Match:
    """Models of this machine that are these weights, the surest first; of `others` only the name is right.

    `sure`: the repository, the sizes or the hash say so, not a name alone.
    """

    found: tuple[ModelFile, ...] = ()
    others: tuple[ModelFile, ...] = ()
    sure: bool = False

    @property
    def ambiguous(self) -> bool:
        """True if several files that differ match."""
        return not self.sure and len({(one.size, one.quantization) for one in self.found}) > 1


def match(variant: Variant, models: Sequence[ModelFile], shipped: Path) -> Match:
    """The models that are a variant's weights; `shipped` is the folder of the program's own files."""
    if variant.bundled is not None:
        path = str(shipped / variant.bundled)
        return Match(tuple(one for one in models if one.path == path), sure=True)
    right = [one for one in models if one.format == _FORMATS[variant.format] and _is_called(variant, one)]
    sized = [one for one in right if not _differs(variant, one)]
    others = tuple(one for one in right if one not in sized)
    sure = [one for one in sized if _sure(variant, one)]
    return Match(tuple(sure or sized), others, bool(sure))


def weights_files(variant: Variant) -> tuple[WeightFile, ...]:
    """The files that hold the weights."""
    return tuple(file for file in variant.files if file.role == "weights")


def wrong_files(variant: Variant, model: ModelFile) -> tuple[tuple[WeightFile, int | None], ...]:
    """Files of a variant that are not beside this model (None), or not as large as they must be (bytes).

    Looks at the disk, at sizes alone.
    """
    found: list[tuple[WeightFile, int | None]] = []
    for file in variant.files:
        try:
            size = file_at(variant, file, model).stat().st_size
        except OSError:
            found.append((file, None))
            continue
        if file.size is not None and size != file.size:
            found.append((file, size))
    return tuple(found)


def file_at(variant: Variant, file: WeightFile, model: ModelFile) -> Path:
    """Return the path of a variant's file beside this model, existing or not."""
    place = Path(model.path)
    if variant.format == "gguf" and file is next(iter(weights_files(variant)), None):
        return place  # Its name may be another.
    folder = place if place.is_dir() else place.parent
    path = folder / file.name
    return path if path.exists() else folder / PurePath(file.name).name


def from_repository(repository: str, path: str) -> bool:
    """Return True if a folder has the name of a repository, as in Hugging Face's cache."""
    return _called_after(repository, PurePath(path))


def _is_called(variant: Variant, model: ModelFile) -> bool:
    path = PurePath(model.path)
    if _hash(variant, path):
        return True
    names = {PurePath(file.name).name.lower() for file in weights_files(variant)}
    if variant.format == "gguf":
        if names:
            return path.name.lower() in names
        return _from_repository(variant, path.parent) and _quantised(variant, model)
    if _from_repository(variant, path):
        return True
    return variant.repository is not None and path.name.lower() == _last(variant.repository)


def _sure(variant: Variant, model: ModelFile) -> bool:
    path = PurePath(model.path)
    folder = path if variant.format == "safetensors" else path.parent
    exact = all(file.size is not None for file in weights_files(variant)) and bool(weights_files(variant))
    return exact or _hash(variant, path) or _from_repository(variant, folder)


def _hash(variant: Variant, path: PurePath) -> bool:
    blob = _BLOB.fullmatch(path.name)
    return blob is not None and any(file.sha256 == blob["hash"] for file in weights_files(variant))


def _from_repository(variant: Variant, folder: PurePath) -> bool:
    """Return True if a folder has the name of the variant's repository, as Hugging Face's cache and LM Studio
    do it."""
    return variant.repository is not None and _called_after(variant.repository, folder)


def _called_after(repository: str, folder: PurePath) -> bool:
    hub = _HUB_FOLDER.search(f"{folder.as_posix()}/")
    if hub is not None:
        return hub["name"].replace("--", "/").lower() == repository.lower()
    return "/".join(folder.parts[-2:]).lower() == repository.lower()


def _differs(variant: Variant, model: ModelFile) -> bool:
    """Return True if the weights are known to have another size."""
    sizes = [file.size for file in weights_files(variant)]
    known = [size for size in sizes if size is not None]
    return bool(sizes) and len(known) == len(sizes) and model.size != sum(known)


def _quantised(variant: Variant, model: ModelFile) -> bool:
    return _plain(variant.quantization) == _plain(model.quantization or "")


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", text.lower())


def _last(repository: str) -> str:
    return repository.rpartition("/")[2].lower()
