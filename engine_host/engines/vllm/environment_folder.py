"""An environment's folder: changed by one host at a time, and out of the way before it is deleted."""

import asyncio
import contextlib
import errno
import fcntl
import os
import secrets
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import psutil

from engine_host.core import atomic_file
from engine_host.core.errors import HostError
from engine_host.core.outside import json_text
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr

RECORD = "installation.json"
_RETIRED = ".removed-"
_KEPT = ".before-"
_TRIES = 10
_MOMENT = 0.03


def read_record(home: Path) -> dict[str, Any] | None:
    """Read the record of a finished install; None when it never finished."""
    try:
        return json_text.read_object(home / RECORD)
    except (OSError, ValueError):
        return None


def is_complete(home: Path) -> bool:
    """Return True if an environment's install is finished and its Python and vLLM are still there."""
    there = (home / "bin" / "python").exists() and any(home.glob("lib/python3*/site-packages/vllm"))
    return there and read_record(home) is not None


@contextlib.asynccontextmanager
async def lock_environment(home: Path) -> AsyncIterator[None]:
    """Lock an environment against changes by other hosts; a killed host's lock ends with it.

    Raises HostError: conflict while another one has it, disk_full, not_writable.
    """
    descriptor = await _locked(home)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            _lock(home).unlink()
        os.close(descriptor)


async def _locked(home: Path) -> int:
    path = _lock(home)
    for _ in range(_TRIES):
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise atomic_file.saving_failed(path, error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever had it before may have removed the file between our open and our lock.
            with contextlib.suppress(FileNotFoundError):
                if os.fstat(descriptor).st_ino == path.stat().st_ino:
                    return descriptor
        except BlockingIOError:
            # `is_locked` holds it for a moment too.
            await asyncio.sleep(_MOMENT)
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
    raise HostError(
        Reason.CONFLICT,
        tr("Another engine host installs or removes vLLM {home} right now.", home=home.name),
        cause="An environment is changed by one host at a time.",
        fix="Wait until that one is done, then try again.",
        evidence={"path": str(home)},
    )


def _lock(home: Path) -> Path:
    return home.with_name(f".{home.name}.lock")


def is_locked(home: Path) -> bool:
    """Return True if a host is changing this environment."""
    try:
        descriptor = os.open(_lock(home), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def refuse_used(home: Path) -> None:
    """Raises HostError(conflict) while a process, of whichever host, runs an environment's own programs."""
    if read_record(home) is None:
        return  # Whatever still runs in an unfinished one belongs to the install that was cut off.
    own = f"{home}/bin/"
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"]
        if words and str(words[0]).startswith(own):
            raise HostError(
                Reason.CONFLICT,
                tr("Process {pid} runs from vLLM {home}.", pid=process.pid, home=home.name),
                cause="An environment is not changed under a running engine; this one is not of this host.",
                fix="End it where it was started, then try again.",
                evidence={"pid": process.pid, "command": list(words[:12]), "path": str(home)},
            )


def retire(home: Path) -> Path | None:
    """Take an environment out of use in one step; return its new path, None when there was none.

    Raises HostError(not_writable), with everything as it was.
    """
    return _moved(home, home, _RETIRED)


def keep(home: Path) -> Path | None:
    """Move an environment beside its place until another is finished there; return its new path.

    None when there was none. Raises HostError(not_writable), with everything as it was.
    """
    return _moved(home, home, _KEPT)


def restore_kept(home: Path) -> bool:
    """Bring a kept environment back, or retire it once another is finished; return True if one came back.

    The caller holds the environment's lock. Raises HostError(not_writable).
    """
    back = False
    for before in _kept(home):
        if read_record(home) is not None:
            _moved(before, home, _RETIRED)
        else:
            retire(home)
            _renamed(before, home)
            back = True
    return back


def _kept(home: Path) -> tuple[Path, ...]:
    return tuple(sorted(home.parent.glob(f".{home.name}{_KEPT}*")))


def _moved(folder: Path, home: Path, mark: str) -> Path | None:
    aside = home.with_name(f".{home.name}{mark}{secrets.token_hex(3)}")
    return aside if _renamed(folder, aside) else None


def _renamed(folder: Path, to: Path) -> bool:
    """Rename a folder; return False if there was none. Raises HostError(not_writable), nothing changed."""
    try:
        folder.rename(to)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise HostError(
            Reason.NOT_WRITABLE,
            tr("{folder} could not be moved: {error}. It is unchanged.", folder=folder, error=error.strerror),
            cause="The folder that holds it is not writable for you, or a disk is mounted there.",
            fix=tr("Make {parent} writable for yourself and try again.", parent=folder.parent),
            evidence={"path": str(folder), "errno": error.errno},
        ) from error
    return True


def delete(folder: Path) -> tuple[OSError, ...]:
    """Delete a folder as far as possible; return the errors of what could not be deleted."""
    if folder.is_symlink():
        return _tried(os.unlink, folder)
    kept: list[OSError] = []
    for path, folders, files in os.walk(folder, topdown=False, onerror=kept.append):
        here = Path(path)
        links = [name for name in folders if (here / name).is_symlink()]
        for name in (*files, *links):
            kept += _tried(os.unlink, here / name)
        # A folder that is not empty is no reason of its own: what is in it was told already.
        kept += [
            error for error in _tried(os.rmdir, here) if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}
        ]
    if not kept and folder.exists():
        kept.append(OSError(errno.ENOTEMPTY, "somebody still writes into it", str(folder)))
    return tuple(error for error in kept if not isinstance(error, FileNotFoundError))


def _tried(action: Callable[[Path], None], path: Path) -> tuple[OSError, ...]:
    try:
        action(path)
    except FileNotFoundError:
        return ()
    except OSError as error:
        return (error,)
    return ()


def retired(home: Path) -> tuple[Path, ...]:
    """List the folders that were taken out of use and are not deleted yet."""
    return tuple(sorted(home.parent.glob(f".{home.name}{_RETIRED}*")))


def clear(home: Path) -> tuple[OSError, ...]:
    """Delete an environment, finished or not, and those retired before; return what could not be deleted.

    The caller holds its lock. Raises HostError(not_writable), with the environment as it was.
    """
    retire(home)
    for before in _kept(home):
        _moved(before, home, _RETIRED)
    return tuple(error for folder in retired(home) for error in delete(folder))


def leftovers(home: Path) -> tuple[Path, ...]:
    """List the remains of an interrupted install or removal; none while a host is at work there."""
    if is_locked(home):
        return ()
    finished = read_record(home) is not None
    begun = os.path.lexists(home) and not finished
    # Beside an unfinished one it is no leftover: it is what comes back.
    return ((home,) if begun else ()) + (_kept(home) if finished else ()) + retired(home)


async def restore(home: Path) -> bool:
    """Bring back what an interrupted reinstall had kept; return True if there was one.

    Raises HostError: conflict (a host is at work there), disk_full, not_writable.
    """
    if not await asyncio.to_thread(_kept, home):
        return False
    async with lock_environment(home):
        return await asyncio.to_thread(restore_kept, home)


async def clear_leftovers(home: Path) -> int:
    """Delete the remains of an interrupted install or removal; return the freed bytes.

    Raises HostError: conflict (a host is at work there), disk_full, not_writable.
    """

    def work() -> int:
        restore_kept(home)
        if read_record(home) is None:
            retire(home)
        before = sum(map(size, retired(home)))
        for folder in retired(home):
            delete(folder)
        return before - sum(map(size, retired(home)))

    async with lock_environment(home):
        return await asyncio.to_thread(work)


def size(folder: Path) -> int:
    """Bytes of a folder on disk, each file once however often it is linked."""
    blocks: dict[tuple[int, int], int] = {}
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            state = path.lstat()
            blocks[state.st_dev, state.st_ino] = state.st_blocks * 512
    return sum(blocks.values())


def not_deleted(done: str, home: Path, kept: tuple[OSError, ...]) -> HostError:
    """Return the error for what `clear` could not delete."""
    left = retired(home)
    return HostError(
        Reason.NOT_WRITABLE,
        tr("{done}, but {count} of its files and folders could not be deleted.", done=done, count=len(kept)),
        cause=tr("{filename}: {error}.", filename=kept[0].filename, error=kept[0].strerror),
        fix=tr("Delete {left} yourself, as the user who may.", left=" and ".join(map(str, left))),
        evidence={
            "left": list(map(str, left)),
            "size": sum(map(size, left)),
            "kept": [{"path": str(error.filename), "why": error.strerror} for error in kept[:20]],
        },
    )
