"""One host's connection: made, watched, made again, and told of at each change."""

import asyncio
import contextlib
import logging
import math
import os
import shlex
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from engine_host.core import atomic_file
from engine_host.core.errors import HostError, defect
from engine_host.core.processes.own_programs import OwnProgram, command_of
from engine_host.engines.process.reaper import Reaper
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.remote.hosts import RemoteHostState, is_address
from engine_host.remote.book import KeptHost
from engine_host.remote.ssh import failures
from engine_host.remote.ssh.command_lines import OpenSsh, communicate, end_group
from engine_host.remote.ssh.folder import HostFolder
from engine_host.remote.ssh.jumps import changed_jump
from engine_host.remote.ssh.questions import Attempt, QuestionDesk

_log = logging.getLogger(__name__)
_LOOK = 0.05
_LONGEST_TRY = 90.0
"""Seconds for one try, without those in which a person is asked."""
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
_BETWEEN_HURRIES = 5.0
"""Seconds between two tries that requests bring forward."""
_STEADY = 60.0
"""Seconds that a connection has to stand before the next pause is short again."""
_MOST_WORDS = 16 << 10


@dataclass
class Status:
    """The connection as it is shown."""

    state: RemoteHostState = RemoteHostState.DISCONNECTED
    sentence: str = "Not connected."
    problem: Problem | None = None
    next_try_at: float | None = None
    connected_at: float | None = None
    address: str | None = None


class Connection:
    """Keeps one ssh running for one host, until it is told not to or a person is needed."""

    def __init__(
        self,
        host: KeptHost,
        folder: HostFolder,
        ssh: OpenSsh,
        desk: QuestionDesk,
        reaper: Reaper,
        changed: Callable[[], None],
        session: Callable[["Connection"], Awaitable[None]],
        *,
        stood_before: bool = True,
    ) -> None:
        """`changed` is told of each new state; `session` runs while it stands, and is cancelled with it.

        `stood_before`: a connection to this destination has ever stood.
        """
        self.host = host
        self.folder = folder
        self.status = Status()
        self._ssh = ssh
        self._desk = desk
        self._reaper = reaper
        self._changed = changed
        self._session = session
        self._task: asyncio.Task[None] | None = None
        self._now = asyncio.Event()
        self._told_reaper: set[Path] = set()
        self._log = _LastWords()
        self._stood_at: str | None = None
        self._stood_before = stood_before
        self._hurried_at = -math.inf

    @property
    def connected(self) -> bool:
        """True while commands can go over it."""
        return self.status.state is RemoteHostState.CONNECTED

    @property
    def _trying(self) -> str:
        return f"Connecting to {self.host.destination}."

    @property
    def wanted(self) -> bool:
        """True while it is being kept."""
        return self._task is not None and not self._task.done()

    def connect(self) -> None:
        """Connect, or try again now; does nothing while it stands. Raises HostError(ssh_missing)."""
        _ = self._ssh.program
        if self.wanted:
            if self.status.next_try_at is not None:
                # Whoever asked is to wait for this try, and not to read of the one before.
                self._tell(RemoteHostState.RECONNECTING, self._trying, problem=self.status.problem)
            self._now.set()
            return
        for file in self.folder.files():
            self._remove_with_host(file)
        self._tell(RemoteHostState.CONNECTING, self._trying)
        self._task = asyncio.create_task(self._keep(), name=f"ssh to {self.host.name}")

    def hurry(self) -> None:
        """Try again now, where the next try is waited for and the last hurry was some seconds ago."""
        now = time.monotonic()
        if self.wanted and self.status.next_try_at is not None and now >= self._hurried_at + _BETWEEN_HURRIES:
            self._hurried_at = now
            self._now.set()

    def connect_later(self) -> None:
        """Say that it is being connected: it is, as soon as what is being ended has ended."""
        self._tell(RemoteHostState.CONNECTING, self._trying)

    async def disconnect(self) -> None:
        """End it and leave nothing of it behind."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self.folder.remove()
        if self.status.state is not RemoteHostState.DISCONNECTED:
            self.status = Status(address=self.status.address)
            self._changed()

    def command(self, *command: str) -> list[str]:
        """Return the command line of a fixed command there. Raises HostError(ssh_lost) without connection."""
        if not self.connected:
            raise failures.not_connected(self.host.name)
        return self._ssh.over(self.host.destination, self.folder.ssh, *command)

    @property
    def refuses_forwards(self) -> bool:
        """True where the machine let nothing through to what a socket was forwarded to."""
        return failures.refuses_forwards(self._log.text)

    async def stands(self) -> bool:
        """Ask ssh itself: the end of a connection is heard of a moment later."""
        return self.connected and await self._answers()

    async def forward(self, local: Path, remote: str) -> None:
        """Lead a socket here to `remote` there: HOST:PORT or a socket's path. Raises HostError."""
        if "$" in remote or ("/" in remote and (not remote.startswith("/") or "%" in remote)):
            # The machine said it, and ssh would put what we have in our environment there.
            raise HostError(
                Reason.SSH_FORWARD_REFUSED,
                tr(
                    "{host}: {remote} is no place that a socket is forwarded to.",
                    host=self.host.name,
                    remote=repr(remote[:100]),
                ),
                cause="It holds signs in whose place ssh would put what only this machine is to know.",
                fix="Give another value.",
                evidence={"to": remote[:300]},
            )
        self._remove_with_host(local)
        await self._lead("forward", local, remote)

    async def end_forward(self, local: Path, remote: str) -> None:
        """Lead a socket there no longer, and remove it. Raises HostError where ssh does not heed it."""
        await self._lead("cancel", local, remote)
        with contextlib.suppress(OSError):
            os.unlink(local)

    def _remove_with_host(self, file: Path) -> None:
        """Have a file removed should this host be killed; each is told of once."""
        if file not in self._told_reaper:
            self._told_reaper.add(file)
            self._reaper.remove_with_host(file)

    async def _lead(self, what: str, local: Path, remote: str) -> None:
        there = _quoted(remote) if remote.startswith("/") else remote
        argv = self._ssh.ask_master(
            self.host.destination, self.folder.ssh, what, "-L", f"{_quoted(str(local))}:{there}"
        )
        code, _, err = await communicate(argv, self._ssh.sharing_environment(), seconds=15.0)
        if code != 0:
            raise HostError(
                Reason.SSH_FORWARD_REFUSED,
                tr("{host}: a socket could not be forwarded.", host=self.host.name),
                cause=err.strip()[-300:],
                fix="Do it again.",
                evidence={"asked": what, "exit": code, "stderr": err, "to": remote},
            )

    async def _keep(self) -> None:
        pause = _FIRST_PAUSE
        try:
            while True:
                began = time.monotonic()
                problem, stood = await self._once()
                if stood and time.monotonic() - began > _STEADY:
                    pause = _FIRST_PAUSE
                if not failures.is_retried(problem):
                    self._tell(RemoteHostState.FAILED, problem.message, problem=problem)
                    return
                if not await self._wait(problem, pause):
                    # Whoever tries by hand does not make the others wait longer.
                    pause = min(pause * 2, _LONGEST_PAUSE)
        except HostError as error:
            self._tell(RemoteHostState.FAILED, error.problem.message, problem=error.problem)
        except Exception as error:  # noqa: BLE001 - whoever waits is to hear of a defect of ours too
            _log.exception("the connection to %s ended", self.host.name)
            problem = defect(error)
            self._tell(RemoteHostState.FAILED, problem.message, problem=problem)

    async def _wait(self, problem: Problem, pause: float) -> bool:
        """Wait for the next try; return True if somebody asked for it before its time."""
        self._now.clear()
        self._tell(
            RemoteHostState.RECONNECTING,
            f"{problem.message} Trying again in {pause:.0f} s.",
            problem=problem,
            next_try_at=time.time() + pause,
        )
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._now.wait()
        self._tell(RemoteHostState.RECONNECTING, self._trying, problem=problem)
        return self._now.is_set()

    async def _once(self) -> tuple[Problem, bool]:
        """Connect once and stay until it ends; return why it ended, and whether it had stood.

        Raises HostError for what no other try mends.
        """
        try:
            address = await self._address()
        except HostError as error:
            return error.problem, False
        effective = await self._ssh.effective(self.host.destination)
        self.status.address = f"{address or effective.host}:{effective.port}"
        self.folder.make()
        config = await self._ssh.asking_config(self.host.destination, effective)
        await asyncio.to_thread(atomic_file.write, self.folder.config, config)
        attempt = Attempt(self.host.name)
        attempt.on_change = lambda: self._asking(attempt)
        environment = self._ssh.environment(await self._desk.environment(attempt))
        argv = self._ssh.master(
            self.host.destination, self.folder.ssh, self.folder.config, effective, address
        )
        process = await asyncio.create_subprocess_exec(
            *(*command_of(OwnProgram.OWNED), str(os.getpid()), "--"),
            *argv,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        self._reaper.watch(process.pid, self.folder.ssh)
        words = _LastWords()
        self._log = _LastWords()
        reading = asyncio.gather(words.read(process.stderr), self._log.read(process.stdout))
        connected = False
        try:
            connected = await self._made(process, attempt)
            if connected:
                await self._stand(process)
        finally:
            # While this runs nobody takes it for connected any more.
            await asyncio.shield(self._end(process, attempt, reading))
        told, log = words.text, self._log.text
        if (
            not connected
            and not told
            and not log
            and process.returncode is not None
            and process.returncode < 0
        ):
            told = f"Connection timed out: nothing within {_LONGEST_TRY:.0f} seconds"
        ended = failures.Ended(
            self.host.destination, process.returncode, told, attempt, log, effective, self._stood_before
        )
        problem = failures.problem_of(ended, was_connected=connected)
        if not connected and problem.reason is Reason.SSH_FAILED and failures.blames_jump(ended):
            problem = await changed_jump(self._ssh, self.host.destination, effective) or problem
        return problem, connected

    async def _end(
        self, process: asyncio.subprocess.Process, attempt: Attempt, reading: Awaitable[object]
    ) -> None:
        self._desk.end(attempt)
        await end_group(process)
        self._reaper.forget(process.pid)
        with contextlib.suppress(TimeoutError):
            # A jump's process may hold the pipe a moment longer.
            async with asyncio.timeout(1.0):
                await reading
        self.folder.clear()

    async def _made(self, process: asyncio.subprocess.Process, attempt: Attempt) -> bool:
        """Wait until commands can share it; False where ssh ended or took too long."""
        left = _LONGEST_TRY
        while process.returncode is None and left > 0:
            if self.folder.ssh.exists() and await self._answers():
                return True
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK):
                    await process.wait()
            if not attempt.waiting:
                left -= _LOOK
        return False

    async def _answers(self) -> bool:
        argv = self._ssh.ask_master(self.host.destination, self.folder.ssh, "check")
        code, _, _ = await communicate(argv, self._ssh.sharing_environment(), seconds=10.0)
        return code == 0

    async def _stand(self, process: asyncio.subprocess.Process) -> None:
        """Tell that it stands, and wait until ssh ends."""
        now, before = self.status.address, self._stood_at
        moved = f" It was at {before} before, and was found again." if before not in (None, now) else ""
        self._stood_at, self._stood_before = now, True
        self._tell(RemoteHostState.CONNECTED, f"Connected to {now}.{moved}")
        session = asyncio.ensure_future(self._session(self))
        try:
            await process.wait()
        finally:
            session.cancel()
            await asyncio.gather(session, return_exceptions=True)

    async def _address(self) -> str | None:
        """Return what the person's own command says about the address; None without one.

        Raises HostError(ssh_unreachable) where it fails.
        """
        if self.host.address_command is None:
            return None
        argv = shlex.split(self.host.address_command)
        fix = Fix(text="Try the command by hand.", command=self.host.address_command)
        try:
            code, out, err = await communicate(argv, dict(os.environ), seconds=20.0)
        except HostError as error:
            code, out, err = None, "", error.problem.message
        found = out.strip()
        if code != 0 or not is_address(found):
            raise HostError(
                Reason.SSH_UNREACHABLE,
                tr("The address of {host} is not known: its command told none.", host=self.host.name),
                cause=err.strip()[-300:]
                or tr("It printed {found}, and ended with code {code}.", found=repr(found[:100]), code=code),
                fix=fix,
                evidence={"argv": argv, "exit": code, "stdout": out[:1000], "stderr": err},
            )
        return found

    def _asking(self, attempt: Attempt) -> None:
        if attempt.waiting and self.wanted:
            last = attempt.asked[-1]
            what = last.kind.value.replace("_", " ")
            told = f"ssh waits: {last.text.strip()}" if last.notice else f"ssh asks for an answer: {what}."
            self._tell(RemoteHostState.ASKING, told[:300], problem=self.status.problem)
        elif self.status.state is RemoteHostState.ASKING:
            self._tell(RemoteHostState.CONNECTING, self._trying)

    def _tell(
        self,
        state: RemoteHostState,
        sentence: str,
        *,
        problem: Problem | None = None,
        next_try_at: float | None = None,
    ) -> None:
        since = time.time() if state is RemoteHostState.CONNECTED else None
        self.status = Status(state, sentence, problem, next_try_at, since, self.status.address)
        self._changed()


class _LastWords:
    """The end of what ssh wrote on stderr."""

    def __init__(self) -> None:
        self._raw = b""

    @property
    def text(self) -> str:
        return self._raw.decode("utf-8", "replace").replace("\r", "")

    async def read(self, stream: asyncio.StreamReader | None) -> None:
        """Read to the end and keep the last of it."""
        while stream is not None and (part := await stream.read(4096)):
            self._raw = (self._raw + part)[-_MOST_WORDS:]


def _quoted(path: str) -> str:
    """Return a path as -L takes it: a colon would end it."""
    return path.replace("\\", "\\\\").replace(":", "\\:")
