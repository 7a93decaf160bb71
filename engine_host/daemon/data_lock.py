"""One host a data folder: two would end each other's engines and jobs, whatever their run folders are."""

import contextlib
import fcntl
import json
import os
import platform
import time

from engine_host.core import atomic_file
from engine_host.core.errors import HostError
from engine_host.core.paths import Folders, LockOwner, boot
from engine_host.daemon import lock_owner as holder
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr


class DataLock:
    """This host's claim on a data folder: a lock on a file that says where the host is found.

    The file stays, so that nobody locks one that was just removed; what it says counts while it is locked.
    """

    def __init__(self, folders: Folders, *, patience: float = 0.0) -> None:
        """`patience`: seconds to wait for a host that holds it without listening: it starts or ends."""
        self._folders = folders
        self._patience = patience
        self._lock = -1
        self._killed = b""

    def take(self) -> None:
        """Lock the file and note in it who serves this data from where.

        Raises HostError(second_instance), HostError(disk_full), HostError(not_writable).
        """
        path = self._folders.data_lock
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise atomic_file.saving_failed(path, error) from error
        try:
            self._wait()
            before = self._folders.read_lock_owner()
            self._killed = path.read_bytes() if before is not None and before.stays else b""
            self._write(stays=False)
        except OSError as error:
            self._close()
            raise atomic_file.saving_failed(path, error) from error
        except HostError:
            self._close()
            raise

    def note(self, *, stays: bool) -> None:
        """Note whether the host goes on without a window: one that is killed comes back as what it was."""
        if self._lock >= 0:
            if stays:
                self._killed = b""
            # On a disk that is full the host serves on, and the note is what it was.
            with contextlib.suppress(OSError):
                self._write(stays=stays)

    def end_asked(self) -> None:
        """Somebody ended the engine host: none comes back for one that was killed before it either."""
        self._killed = b""

    def _write(self, *, stays: bool) -> None:
        note = {
            "pid": os.getpid(),
            "run": str(self._folders.run),
            "machine": platform.node(),
            "boot": boot(),
            "stays": stays,
        }
        # One write: who reads meanwhile finds the old note or the new one, of the same length.
        said = json.dumps(note).ljust(len(json.dumps(note | {"stays": False}))).encode()
        os.pwrite(self._lock, said, 0)
        os.ftruncate(self._lock, len(said))

    def release(self) -> None:
        """Let the next host have the data; called twice it does nothing."""
        if self._lock < 0:
            return
        # The note of a host that was to stay and was killed outlives that of a command.
        # A note that is left does no harm: nobody answers where it points.
        with contextlib.suppress(OSError):
            os.pwrite(self._lock, self._killed, 0)
            os.ftruncate(self._lock, len(self._killed))
        self._close()

    def _wait(self) -> None:
        """Have the lock, or raise HostError(second_instance)."""
        tries = 0
        end = time.monotonic() + self._patience
        while True:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                claim = self._folders.read_lock_owner()
                if claim is not None and not claim.here:
                    raise self._taken(claim, False) from error
                dead = claim is None or not holder.runs(str(claim.pid))
                answers = claim is not None and holder.listens(claim.folders.socket)
                if (tries < holder.TRIES and dead) or (time.monotonic() < end and not answers):
                    tries += 1
                    time.sleep(holder.MOMENT)
                    continue
                raise self._taken(claim, answers) from error
            else:
                return

    def _taken(self, owner: LockOwner | None, answers: bool) -> HostError:
        pid = owner.pid if owner else None
        run = str(owner.folders.run) if owner else None
        cause = tr("One host serves all of a user's data.")
        if owner is not None and not owner.here:
            fix = Fix(
                text=tr(
                    "End it on {machine}, with `sndr quit`, or set SNDR_HOME to a folder of this one.",
                    machine=owner.machine,
                )
            )
        elif answers:
            cause = tr(
                "One host serves all of a user's data. "
                "That one was started with another XDG_RUNTIME_DIR than this one."
            )
            fix = Fix(text="Use that one, which every command finds, or end it first.", command="sndr quit")
        else:
            cause = tr(
                "One host serves all of a user's data. That one does not answer: it starts, ends or hangs."
            )
            fix = Fix(text="Wait until it has ended, or end it.", command=f"kill {pid}" if pid else None)
        return HostError(
            Reason.SECOND_INSTANCE,
            tr(
                "An engine host[ on {machine}] (pid {pid}, run folder {run}) serves {data} already.",
                machine=owner.machine if owner is not None and not owner.here else None,
                pid=pid or tr("unknown"),
                run=run or tr("unknown"),
                data=self._folders.data,
            ),
            cause=cause,
            fix=fix,
            evidence={"pid": pid, "run": run, "data": str(self._folders.data)},
        )

    def _close(self) -> None:
        os.close(self._lock)
        self._lock = -1
