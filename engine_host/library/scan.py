"""Finds models: bundled, in the user's folders, and in the caches of other programs (read only)."""

import contextlib
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from engine_host.core.outside import files, json_text
from engine_host.library.checkpoint import is_checkpoint
from engine_host.library.gguf import split_of
from engine_host.library.hub.cache import cache_folder
from engine_host.protocol.models import ModelOrigin

# A folder deeper than this is no model folder; a place with more entries is most likely a whole disk.
MAX_DEPTH = 12
MAX_ENTRIES = 400_000
_SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "site-packages", "proc", "sys", "dev"})
# Not models by themselves: projectors, importance matrices, bare vocabularies.
_SKIPPED_FILES = re.compile(r"(^|[-_.])(mmproj|imatrix|ggml-vocab)", re.IGNORECASE)
# The description of a pipeline of several models; its parts are none by themselves.
_PIPELINE = "model_index.json"
_HUB_MODEL = "models--"
_OLLAMA_MODEL = "application/vnd.ollama.image.model"
_MANIFEST_BYTES = 1 << 20
_REFERENCE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Place:
    """A folder to look in, what kind of place it is, and its name for people."""

    folder: Path
    origin: ModelOrigin
    label: str
    ollama: bool = False


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model that was found and not yet read; `size` in bytes, of this file or this folder's weights alone.

    `name` is the file's stem without its part number, or the folder's name; for Ollama, whose files have no
    names, "model:tag", and for a checkpoint in the Hugging Face cache "organisation/model".
    """

    path: Path
    origin: ModelOrigin
    found_in: str
    name: str
    size: int


def other_programs(
    environment: Mapping[str, str] | None = None, home: Path | None = None
) -> tuple[Place, ...]:
    """The model folders of other programs that exist on this machine; nothing is ever written there."""
    env = os.environ if environment is None else environment
    user = home or Path.home()
    cache = Path(env.get("XDG_CACHE_HOME") or user / ".cache")
    own_cache = user / "Library" / "Caches" if sys.platform == "darwin" else cache
    candidates = [
        Place(cache_folder(env, user), ModelOrigin.OTHER_PROGRAM, "Hugging Face"),
        Place(user / ".lmstudio" / "models", ModelOrigin.OTHER_PROGRAM, "LM Studio"),
        Place(user / ".cache" / "lm-studio" / "models", ModelOrigin.OTHER_PROGRAM, "LM Studio"),
        Place(
            Path(env.get("LLAMA_CACHE") or own_cache / "llama.cpp"), ModelOrigin.OTHER_PROGRAM, "llama.cpp"
        ),
        Place(
            Path(env.get("OLLAMA_MODELS") or user / ".ollama" / "models"),
            ModelOrigin.OTHER_PROGRAM,
            "Ollama",
            ollama=True,
        ),
        Place(Path("/usr/share/ollama/.ollama/models"), ModelOrigin.OTHER_PROGRAM, "Ollama", ollama=True),
    ]
    return tuple(place for place in candidates if _is_folder(place.folder))


def find_models(places: Iterable[Place], stop: Callable[[], bool] = lambda: False) -> tuple[FoundModel, ...]:
    """Finds the GGUF files and the checkpoint folders of some places, each once, in the order of the places.

    Blocks: run it in a thread. A folder that cannot be read is passed over. `stop` is asked between
    folders and ends the search with what was found. Links to files are followed; a link to a folder only
    when it stays below its place, and no folder is entered twice.
    """
    found: list[FoundModel] = []
    seen: set[tuple[int, int]] = set()
    for place in places:
        candidates = _ollama(place) if place.ollama else _walk(place, stop)
        for path, name in candidates:
            try:
                info = path.stat()
            except OSError:
                continue
            if (info.st_dev, info.st_ino) in seen:
                continue
            seen.add((info.st_dev, info.st_ino))
            size = _weights(path) if stat.S_ISDIR(info.st_mode) else info.st_size
            found.append(FoundModel(path, place.origin, place.label, name, size))
    return tuple(found)


def _walk(place: Place, stop: Callable[[], bool]) -> Iterator[tuple[Path, str]]:
    root = os.path.realpath(place.folder)
    entered: set[tuple[int, int]] = set()
    waiting = [(root, 0)]
    entries = 0
    while waiting and not stop():
        folder, depth = waiting.pop()
        try:
            info = os.stat(folder)
            if (info.st_dev, info.st_ino) in entered:
                continue
            entered.add((info.st_dev, info.st_ino))
            with os.scandir(folder) as listing:
                children = sorted(listing, key=lambda entry: entry.name)
        except OSError:
            continue
        entries += len(children)
        if entries > MAX_ENTRIES:
            return
        names = frozenset(entry.name for entry in children)
        if _PIPELINE in names:
            continue
        below: list[tuple[str, int]] = []
        for entry in children:
            if entry.name.lower().endswith(".gguf"):
                if _is_model(entry):
                    yield Path(entry.path), _name(entry.name)
            elif depth < MAX_DEPTH and _enters(entry, root):
                below.append((entry.path, depth + 1))
        # After its GGUF files: of a model that is here in both forms, those run at once.
        here = Path(folder)
        if is_checkpoint(here, names):
            in_hub = hub_name(here)
            if in_hub is None or _is_wanted(here):
                yield here, in_hub or here.name
        waiting.extend(reversed(below))


def hub_name(folder: Path) -> str | None:
    """The "organisation/model" of a revision in a Hugging Face cache; None for a folder elsewhere."""
    model = folder.parent.parent
    if folder.parent.name != "snapshots" or not model.name.startswith(_HUB_MODEL):
        return None
    return model.name.removeprefix(_HUB_MODEL).replace("--", "/")


def _is_wanted(folder: Path) -> bool:
    """Return True for a revision in a Hugging Face cache that is its main branch, or was asked for itself."""
    refs = folder.parent.parent / "refs"
    for name in ("main", folder.name):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            if files.read_text(refs / name, _REFERENCE_BYTES).strip() == folder.name:
                return True
    return False


def _weights(folder: Path) -> int:
    """Bytes of a folder's safetensors files."""
    try:
        with os.scandir(folder) as listing:
            return sum(entry.stat().st_size for entry in listing if entry.name.endswith(".safetensors"))
    except OSError:
        return 0


def _is_model(entry: os.DirEntry[str]) -> bool:
    if _SKIPPED_FILES.search(entry.name):
        return False
    part = split_of(Path(entry.name))
    if part is not None and part[0] != 1:
        return False
    try:
        return entry.is_file()
    except OSError:
        return False


def _enters(entry: os.DirEntry[str], root: str) -> bool:
    if entry.name.startswith(".") or entry.name in _SKIPPED_FOLDERS:
        return False
    try:
        if not entry.is_dir():
            return False
        return not entry.is_symlink() or Path(os.path.realpath(entry.path)).is_relative_to(root)
    except OSError:
        return False


def _ollama(place: Place) -> Iterator[tuple[Path, str]]:
    """Reads Ollama's manifests: its model files have no names of their own."""
    manifests = place.folder / "manifests"
    depth = 0
    waiting = [(manifests, depth)]
    while waiting:
        folder, depth = waiting.pop()
        try:
            children = sorted(folder.iterdir(), reverse=True)
        except OSError:
            continue
        for child in children:
            if child.is_symlink():
                continue
            if child.is_dir() and depth < 5:
                waiting.append((child, depth + 1))
            elif child.is_file() and (blob := _ollama_blob(place.folder, child)) is not None:
                parts = child.relative_to(manifests).parts[1:]
                model = "/".join(parts[:-1]).removeprefix("library/")
                yield blob, f"{model}:{parts[-1]}" if model else child.name


def _ollama_blob(root: Path, manifest: Path) -> Path | None:
    try:
        layers = json_text.parse_object(files.read(manifest, _MANIFEST_BYTES)).get("layers", [])
        digest = next(layer["digest"] for layer in layers if layer["mediaType"] == _OLLAMA_MODEL)
    except (OSError, ValueError, AttributeError, KeyError, TypeError, StopIteration):
        return None
    if not isinstance(digest, str) or not re.fullmatch(r"sha256:[0-9a-f]{64}", digest):
        return None
    blob = root / "blobs" / digest.replace(":", "-")
    return blob if blob.is_file() else None


def _name(file_name: str) -> str:
    return re.sub(r"(-\d{5}-of-\d{5})?\.gguf$", "", file_name, flags=re.IGNORECASE)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False
