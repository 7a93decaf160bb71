"""Find the engine host of this user, or start one and end it again."""

import contextlib
import json
import subprocess
import tempfile
from collections.abc import Iterator
from types import TracebackType
from typing import IO, Self

from pydantic import ValidationError

from engine_host.cli.output import output_here
from engine_host.cli.start.remote import remote_client
from engine_host.cli.text.chosen_host import chosen_host
from engine_host.cli.text.waiting import told_when_long, waiting_for_host
from engine_host.client.sync import ControlClient, wait_for_host
from engine_host.client.sync import connected as connected_here
from engine_host.core.errors import HostError
from engine_host.core.paths import Folders
from engine_host.core.processes.own_programs import OwnProgram, command_of
from engine_host.protocol.errors import ErrorAnswer, Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.operations import table as ops

_START = 40.0
_END = 30.0
_ROUNDS = 4


class HostHold:
    """A client of the host, and the host's process when this program started it.

    Left without `keep_running`, a host that was started here is ended; one that ran before is left alone.
    """

    def __init__(
        self,
        client: ControlClient,
        process: "subprocess.Popen[bytes] | None" = None,
        *,
        detached: bool = False,
    ) -> None:
        """`detached`: the host was started here to go on by itself."""
        self.client = client
        self._process = process
        self.detached = detached

    @property
    def started_here(self) -> bool:
        """True if the host lives for this command alone."""
        return self._process is not None

    def _close_stdin(self, process: "subprocess.Popen[bytes]") -> None:
        if process.stdin is not None:
            process.stdin.close()
        # Not ours to wait for: the system collects it when this program has ended.
        process.returncode = 0
        self.client.close()

    def end(self) -> None:
        """End the host that was started here: orderly, then by closing its lifeline, then by force."""
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            # The interrupted connection may have half an answer in it; the host is asked on a new one.
            try:
                with self.client.again() as fresh:
                    found = fresh.call(ops.HOST)
                    ours = found.pid == process.pid
                    if ours and not found.ends_with_window:
                        # `--detach` in another terminal: what was promised there holds.
                        self._close_stdin(process)
                        return
                    if ours:
                        fresh.call(ops.QUIT_HOST)
            except HostError:
                pass
            if process.stdin is not None:
                process.stdin.close()
            try:
                process.wait(_END)
            except subprocess.TimeoutExpired:
                process.terminate()
                try:
                    process.wait(5)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        self.client.close()

    @contextlib.contextmanager
    def ending_if_not_found(self) -> Iterator[None]:
        """End a host that was started here to go on by itself if what it was started for is not there."""
        try:
            yield
        except HostError as error:
            if error.reason is Reason.NOT_FOUND and self.detached:
                with contextlib.suppress(HostError):
                    self.client.call(ops.QUIT_HOST)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()


def connected(folders: Folders | None = None) -> ControlClient:
    """A client that has reached the host that this command is about, here or on another machine.

    Raises HostError(host_unreachable), HostError(run_folder_unsafe), HostError(protocol_mismatch).
    """
    name = chosen_host()
    return _saying(remote_client(name) if name else connected_here(folders))


def _saying(client: ControlClient) -> ControlClient:
    """Have a client say what it waits for."""
    client.waiting = waiting_for_host
    return client


def may_do_without(error: HostError) -> bool:
    """Return True if no host runs here; what files of this machine say is nothing about another one."""
    return error.reason is Reason.HOST_UNREACHABLE and not chosen_host()


def connected_or_none() -> ControlClient | None:
    """A client of the host; None where none runs here and none is starting or ending."""
    try:
        return connected()
    except HostError as error:
        # What nobody listens to has a socket alone to tell of: no process, no token.
        if not may_do_without(error) or set(error.problem.evidence) != {"socket"}:
            raise
        return None


def connected_for_model() -> ControlClient:
    """A client of the host, for what needs a model that runs; without a host, what to do is to start one."""
    try:
        return connected()
    except HostError as error:
        fix = error.problem.fix
        if not may_do_without(error) or fix is None or fix.command != "sndr serve":
            raise
        start = Fix(
            text="Start a model; without --demo, one of your own.", command="sndr run --demo --detach"
        )
        raise HostError.from_problem(error.problem.model_copy(update={"fix": start})) from error


def find_or_start(folders: Folders | None = None, *, daemon: bool = False) -> HostHold:
    """The host that runs, or a new one; as a daemon it outlives this program.

    One on another machine is never started from here. Raises HostError with the new host's own reason when
    it does not come up.
    """
    if name := chosen_host():
        return HostHold(_saying(remote_client(name)))
    folders = folders or Folders.resolve()
    for _ in range(_ROUNDS):
        try:
            return _find_or_start(folders, daemon)
        except HostError as error:
            # Another command's host was there first, and ended before this one could join it.
            if error.reason is not Reason.SECOND_INSTANCE:
                raise
    return _find_or_start(folders, daemon)


def _find_or_start(folders: Folders, daemon: bool) -> HostHold:
    try:
        return HostHold(_saying(connected_here(folders)))
    except HostError as error:
        # One that ends just now lets nobody in any more; the new one waits for its end.
        if error.reason not in {Reason.HOST_UNREACHABLE, Reason.HOST_GONE, Reason.UNAUTHORIZED}:
            raise
    # The answer goes to a file without a name: a daemon may write to it long after this program is gone.
    with tempfile.TemporaryFile() as answer:
        arguments = [*command_of(OwnProgram.SNDR), "serve", "--json"]
        if not daemon:
            # The lifeline: when this program dies, however, its end of the pipe closes and the host ends.
            arguments += ["--owner-stdin", "--owner", "the command that started it"]
        process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL if daemon else subprocess.PIPE,
            stdout=answer,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            with told_when_long("Starting the engine host …"):
                client, pid = _wait(folders, process, answer)
            _saying(client)
            if pid != process.pid:
                # Somebody else's host was quicker; ours may still wait for its turn.
                if process.stdin is not None:
                    process.stdin.close()
                process.terminate()
                process.wait()
                return HostHold(client)
        except BaseException:
            if process.poll() is None:
                process.terminate()
            process.wait()
            raise
    say_wrong_settings(folders)
    if daemon:
        # Not ours to wait for: the system collects it when this program has ended.
        process.returncode = 0
        return HostHold(client, detached=True)
    return HostHold(client, process)


def _wait(
    folders: Folders, process: "subprocess.Popen[bytes]", answer: IO[bytes]
) -> tuple[ControlClient, int]:
    """A client of the host that answers, and that host's process."""
    while client := wait_for_host(folders, _START, lambda: process.poll() is not None):
        try:
            return client, client.call(ops.HOST).pid
        except HostError:
            # Somebody else's, which has just ended: ours has its turn now.
            client.close()
    if process.returncode is not None:
        raise _died(process.returncode, answer)
    raise HostError(
        Reason.HOST_UNREACHABLE,
        tr("The engine host did not answer within {start:.0f} s of its start.", start=_START),
        cause="The machine is very busy, or the host hangs.",
        fix=Fix(text="Start it in the foreground to see what it does.", command="sndr serve"),
    )


def _died(code: int, answer: IO[bytes]) -> HostError:
    answer.seek(0)
    output = answer.read().decode(errors="replace").strip()
    for line in reversed(output.splitlines()):
        try:
            return HostError.from_problem(ErrorAnswer.model_validate(json.loads(line)).error)
        except (ValueError, ValidationError):
            continue
    return HostError(
        Reason.HOST_GONE,
        tr("The engine host ended while it started (exit code {code}).", code=code),
        cause=output.splitlines()[-1] if output else "",
        fix=Fix(text="Start it in the foreground to see what it does.", command="sndr serve"),
        evidence={"output": output[-4000:]},
    )


def say_wrong_settings(folders: Folders) -> None:
    """Say that the settings of a host that was started here are not used as they are written."""
    if not folders.settings.exists():
        return
    from engine_host.core.settings import SettingsFile  # Most people have none, and its parts take time.

    if (problem := SettingsFile(folders.settings).preview().problem) is not None:
        output_here().note(f"warning: {problem.message} The rest of the file is used: `sndr settings check`.")
