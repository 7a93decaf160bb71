"""The files that are a model: its parts, the names it has in a cache, and the contents behind them."""

import os
from dataclasses import dataclass
from pathlib import Path

from engine_host.library.gguf import split_of
from engine_host.library.scan import hub_name

_MOST = 20_000


@dataclass(frozen=True, slots=True)
class Belongings:
    """Paths that are moved together, names before contents; `root` is the folder of the place they lie in."""

    paths: tuple[Path, ...]
    size: int
    root: Path


def belongings_of(path: Path) -> Belongings:
    """Return what goes when a model is deleted; blocks.

    In the cache of the hub, contents that other revisions use too stay. Raises OSError.
    """
    snapshot = snapshot_of(path)
    if snapshot is not None:
        return _of_cache(path, snapshot)
    named = [path] if path.is_dir() else parts_of(path)
    return Belongings(tuple(named), sum(_size(one) for one in named), path.parent)


def parts_of(path: Path) -> list[Path]:
    """Return all parts of a GGUF file that is split, or the file alone. Raises OSError."""
    part = split_of(path)
    if part is None:
        return [path]
    number, of = part
    ending = f"-{number:05}-of-{of:05}.gguf"
    stem, tail = path.name[: -len(ending)], f"-of-{of:05}.gguf"
    return [
        one
        for one in sorted(path.parent.iterdir())
        if one.name.lower().endswith(tail) and one.name[: -len(ending)] == stem
    ]


def files_of(path: Path) -> list[Path]:
    """Return the files of a model: all parts of a GGUF file, or what lies in a checkpoint's folder."""
    if not path.is_dir():
        return parts_of(path)
    return sorted(one for one in path.iterdir() if one.is_file() and not one.name.startswith("."))


def companions_of(path: Path) -> list[Path]:
    """Return the projectors beside a GGUF file, which read images or sound for it."""
    if path.is_dir():
        return []
    beside = [one for one in path.parent.iterdir() if one.name.lower().endswith(".gguf")]
    return sorted(one for one in beside if "mmproj" in one.name.lower() and one.is_file())


def snapshot_of(path: Path) -> Path | None:
    """Return the snapshot of the hub's cache that a model lies in."""
    return next((one for one in (path, *path.parents) if hub_name(one) is not None), None)


def _of_cache(path: Path, snapshot: Path) -> Belongings:
    repository = snapshot.parent.parent
    below = _links_below(path) if path.is_dir() else parts_of(path)
    wanted = [one for one in below if not path.is_dir() or not one.name.lower().endswith(".gguf")]
    mine = {os.path.realpath(one) for one in wanted}
    every = _links_below(repository / "snapshots")
    if path.is_dir():
        # A content that another revision has too, or a GGUF file beside it, stays.
        names = wanted
        blobs = mine - {os.path.realpath(one) for one in every if one not in wanted}
    else:
        names = [one for one in every if os.path.realpath(one) in mine]
        blobs = mine
    inside = [Path(one) for one in sorted(blobs) if Path(one).is_relative_to(os.path.realpath(repository))]
    if set(names) >= set(every) and _contents(repository) <= {one.name for one in inside}:
        # Nothing else is in the repository, also no part of a download: its folder goes as a whole.
        return Belongings((repository,), sum(_size(one) for one in inside), repository.parent)
    moved = (*names, *(one for one in inside if one not in names))
    return Belongings(moved, sum(_size(one) for one in inside), repository.parent)


def _contents(repository: Path) -> set[str]:
    """Return the names of all contents of a repository, also of those that are not whole."""
    try:
        return {one.name for one in (repository / "blobs").iterdir()}
    except FileNotFoundError:
        return set()


def _links_below(folder: Path) -> list[Path]:
    found: list[Path] = []
    for parent, _folders, names in os.walk(folder):
        found += [Path(parent, name) for name in names]
        if len(found) > _MOST:
            raise OSError(0, f"{folder} holds more files than any model")
    return found


def _size(path: Path) -> int:
    if not path.is_dir():
        return path.stat().st_size
    return sum(one.stat().st_size for one in _links_below(path) if one.is_file())
