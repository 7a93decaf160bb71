"""Models that were deleted lie on their own disk for a day, so that they can come back."""

import contextlib
import errno
import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from engine_host.core import atomic_file
from engine_host.core.errors import HostError
from engine_host.core.outside import files
from engine_host.library.belongings import Belongings
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr

KEPT = 24 * 3600.0
"""Seconds until a deleted model is deleted for good."""
FOLDER = ".sndr-trash"
_LARGEST = 4 << 20


class Thrown(BaseModel):
    """A deleted model: what it was, and from where each of its files went where."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    id: str
    model: str
    path: str
    found_in: str
    size: int
    at: float
    moved: tuple[tuple[str, str], ...]


class Trash:
    """Moves files away and back; what it does is written down before it is done."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        """`folder` holds the notes, and the files of its own disk."""
        self._folder = folder
        self._clock = clock
        self._lock = threading.Lock()

    def all(self) -> list[Thrown]:
        """Return what lies there, newest first; a note that is none is left out."""
        found = []
        with contextlib.suppress(OSError):
            for path in self._folder.glob("*.json"):
                with contextlib.suppress(OSError, ValidationError):
                    one = Thrown.model_validate_json(files.read(path, _LARGEST))
                    if one.id == path.stem:
                        found.append(one)
        return sorted(found, key=lambda one: -one.at)

    def get(self, thrown: str) -> Thrown:
        """One of them. Raises HostError(not_found)."""
        found = next((one for one in self.all() if one.id == thrown), None)
        if found is None:
            raise HostError(
                Reason.NOT_FOUND,
                tr("No deleted model {thrown} can come back.", thrown=repr(thrown)),
                cause="It was deleted for good, or has come back already.",
                fix="`sndr models downloads` lists what can.",
            )
        return found

    def throw(self, what: Belongings, model: str, path: Path, found_in: str) -> Thrown:
        """Move a model away; blocks. Raises HostError: not_writable, disk_full."""
        with self._lock:
            name = secrets.token_hex(6)
            try:
                away = self._place(what) / name
                away.mkdir(mode=0o700, parents=True)
            except OSError as error:
                raise _refused(path, error) from error
            moved = tuple((str(one), str(away / str(number))) for number, one in enumerate(what.paths))
            thrown = Thrown(
                id=name, model=model, path=str(path), found_in=found_in, size=what.size, at=self._clock(),
                moved=moved,
            )  # fmt: skip
            atomic_file.write(self._folder / f"{name}.json", thrown.model_dump_json())
            try:
                for source, target in moved:
                    os.rename(source, target)
            except OSError as error:
                # Where even that fails, the note stays, and it can be restored.
                with contextlib.suppress(OSError):
                    self._back(thrown)
                    self._forget(thrown)
                raise _refused(path, error) from error
            _remove_empty_above(what)
            return thrown

    def restore(self, name: str) -> Thrown:
        """Move a model back; blocks. Raises HostError: not_found, conflict, not_writable."""
        with self._lock:
            thrown = self.get(name)
            in_the_way = [
                source
                for source, target in thrown.moved
                if os.path.lexists(source) and os.path.lexists(target)
            ]
            if in_the_way:
                raise HostError(
                    Reason.CONFLICT,
                    tr(
                        "{model} cannot come back: {in_the_way} is there again.",
                        model=thrown.model,
                        in_the_way=in_the_way[0],
                    ),
                    cause="It was downloaded or put there meanwhile.",
                    fix="Move that away first, or keep it.",
                    evidence={"paths": in_the_way[:20]},
                )
            try:
                self._back(thrown)
            except OSError as error:
                raise _refused(Path(thrown.path), error) from error
            self._forget(thrown)
            return thrown

    def empty(self, *, all_of_it: bool) -> None:
        """Delete for good what is old, or all; blocks. Raises HostError(not_writable)."""
        with self._lock:
            for thrown in self.all():
                # Of one that was cut off half way the other half is in its place: it can come back.
                halved = any(os.path.lexists(one) and not os.path.lexists(to) for one, to in thrown.moved)
                if not all_of_it and (halved or self._clock() - thrown.at < KEPT):
                    continue
                for _source, target in thrown.moved:
                    self._delete(thrown, Path(target))
                self._forget(thrown)

    def _delete(self, thrown: Thrown, target: Path) -> None:
        # Nothing else than what a deletion put there, whatever stands in the note.
        if target.parent.name != thrown.id or target.parent.parent not in {
            self._folder,
            *(Path(source) / FOLDER for one, _ in thrown.moved for source in Path(one).parents),
        }:
            return
        try:
            if target.is_dir() and not target.is_symlink():
                shutil.rmtree(target)
            else:
                target.unlink(missing_ok=True)
        except OSError as error:
            raise _refused(target, error) from error

    def _back(self, thrown: Thrown) -> None:
        for source, target in reversed(thrown.moved):
            if os.path.lexists(target):
                Path(source).parent.mkdir(parents=True, exist_ok=True)
                os.rename(target, source)

    def _forget(self, thrown: Thrown) -> None:
        for folder in {Path(target).parent for _source, target in thrown.moved}:
            with contextlib.suppress(OSError):
                folder.rmdir()
            with contextlib.suppress(OSError):
                if folder.parent.name == FOLDER:
                    folder.parent.rmdir()
        (self._folder / f"{thrown.id}.json").unlink(missing_ok=True)

    def _place(self, what: Belongings) -> Path:
        """Return a folder on the disk of these files: a move to another one would be a copy of all."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        devices = {os.lstat(one).st_dev for one in what.paths}
        if len(devices) > 1:
            raise OSError(errno.EXDEV, "its files lie on several disks")
        return self._folder if {self._folder.stat().st_dev} == devices else what.root / FOLDER


def _remove_empty_above(what: Belongings) -> None:
    """Remove the folders that have nothing in them any more, below the place they lie in."""
    for path in what.paths:
        for folder in path.parents:
            if folder == what.root or not folder.is_relative_to(what.root):
                break
            try:
                folder.rmdir()
            except OSError:
                break


def _refused(path: Path, error: OSError) -> HostError:
    return HostError(
        Reason.DISK_FULL if error.errno in {errno.ENOSPC, errno.EDQUOT} else Reason.NOT_WRITABLE,
        tr("{path} was not moved: {error}.", path=path, error=error.strerror or error),
        cause="The folder is not yours, or the disk refuses.",
        fix="Delete it by hand, or make its folder writable.",
        evidence={"path": str(path), "errno": error.errno},
    )
