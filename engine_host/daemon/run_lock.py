"""One host a run folder and its data: the locks, the token and the control socket, private, removed again."""

import contextlib
import fcntl
import os
import secrets
import socket
import time
from pathlib import Path

from engine_host.core import atomic_file
from engine_host.core.errors import HostError
from engine_host.core.paths import Folders
from engine_host.daemon import lock_owner as holder
from engine_host.daemon.data_lock import DataLock
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr


class RunLock:
    """This host's claim on a run folder, and on the data that it serves."""

    def __init__(self, folders: Folders, *, patience: float = 0.0) -> None:
        """`patience`: seconds to wait for a host that holds the lock without listening: it starts or ends."""
        self._folders = folders
        self._patience = patience
        self._lock = -1
        self._data = DataLock(folders, patience=patience)
        self.token = secrets.token_urlsafe(32)

    def claim(self) -> None:
        """Take the locks and write the token.

        Raises HostError(second_instance), HostError(disk_full), HostError(not_writable).
        """
        path = self._folders.lock
        tries = 0
        end = time.monotonic() + self._patience
        while True:
            try:
                self._lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except FileNotFoundError:
                # The host before has just removed the folder.
                self._folders.make_run_folder()
                continue
            except OSError as error:
                raise atomic_file.saving_failed(path, error) from error
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                pid = os.pread(self._lock, 32, 0).decode("ascii", "replace").strip()
                os.close(self._lock)
                self._lock = -1
                # The reaper of a killed host holds the lock for a moment while it removes the files.
                if tries < holder.TRIES and not holder.runs(pid):
                    tries += 1
                    time.sleep(holder.MOMENT)
                    continue
                if time.monotonic() < end and not holder.listens(self._folders.socket):
                    time.sleep(holder.MOMENT)
                    continue
                raise self._second(pid) from error
            # The host before may have removed the file between our open and our lock.
            with contextlib.suppress(FileNotFoundError):
                if os.fstat(self._lock).st_ino == path.stat().st_ino:
                    break
            os.close(self._lock)
        try:
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            self.release()
            raise atomic_file.saving_failed(path, error) from error
        try:
            self._data.take()
            # Nobody is let in before the data is this host's.
            atomic_file.write(self._folders.token, self.token)
        except HostError:
            self.release()
            raise

    def note(self, *, stays: bool) -> None:
        """Note whether the host goes on without a window, for whoever starts it again."""
        self._data.note(stays=stays)

    def end_asked(self) -> None:
        """Somebody ended the engine host: none that was killed before it comes back."""
        self._data.end_asked()

    def bind(self) -> socket.socket:
        """The control socket, 0600; a stale one of a killed host is replaced."""
        path = self._folders.socket
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise atomic_file.saving_failed(path, error) from error
        control = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # The mode must hold from the first moment: uvicorn itself would make the socket 0666.
        before = os.umask(0o177)
        try:
            control.bind(str(path))
        except OSError as error:
            control.close()
            raise atomic_file.saving_failed(path, error) from error
        finally:
            os.umask(before)
        control.listen(128)
        control.setblocking(False)
        return control

    def files(self) -> tuple[Path, ...]:
        """Return what must not be left behind."""
        return (self._folders.socket, self._folders.token, self._folders.lock)

    def release(self) -> None:
        """Remove the socket, the token and the lock."""
        if self._lock < 0:
            return
        self._data.release()
        for path in self.files():
            with contextlib.suppress(OSError):
                path.unlink()
        os.close(self._lock)
        self._lock = -1
        for lock in self._folders.window_locks():
            _remove_if_left(lock)
        with contextlib.suppress(OSError):
            self._folders.run.rmdir()

    def _second(self, pid: str) -> HostError:
        return HostError(
            Reason.SECOND_INSTANCE,
            tr(
                "An engine host runs already in {run} (pid {pid}).",
                run=self._folders.run,
                pid=pid or tr("unknown"),
            ),
            cause="One host serves every window and command of a user.",
            fix=Fix(text="Use that one, or end it first.", command="sndr quit"),
            evidence={"pid": int(pid) if pid.isdecimal() else None, "run": str(self._folders.run)},
        )


def _remove_if_left(lock: Path) -> None:
    """Remove lock and socket of a window that was killed; those of one that runs stay."""
    with contextlib.suppress(OSError):
        held = os.open(lock, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(held).st_ino != lock.stat().st_ino:
                # Another window has made it anew meanwhile.
                return
            lock.with_suffix(".sock").unlink(missing_ok=True)
            lock.unlink()
        finally:
            os.close(held)
