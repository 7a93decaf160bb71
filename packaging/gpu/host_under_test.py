"""A host in folders of its own, its engines and their processes, for the check on a GPU machine."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx
import psutil

from engine_host.client.sync import ControlClient, wait_for_host
from engine_host.core.errors import HostError
from engine_host.core.paths import Folders
from engine_host.protocol.engines import Engine, EngineState, StopEngine
from engine_host.protocol.host import HostInfo
from engine_host.protocol.jobs import Job, JobState
from engine_host.protocol.launch.plans import LaunchPlan, LaunchRequest, StartRequest
from engine_host.protocol.logs import LogQuery
from engine_host.protocol.operations import table as ops

T = TypeVar("T")
_SERVES = 60.0
_ENDS = 60.0
_LONGEST_ANSWER = 300.0


class HostUnderTest:
    """`sndr serve` in a new folder, which goes away with it."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        # A short name: sockets lie below it.
        self.home = Path(tempfile.mkdtemp(prefix="sndr-g-"))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        environment = {**os.environ, "SNDR_HOME": str(self.home)}
        environment.pop("SNDR_CACHE", None)
        self.folders = Folders.resolve(environment)
        began = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "engine_host", "serve", "--json", "--port", str(self.port)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        found = wait_for_host(self.folders, _SERVES, lambda: self.process.poll() is not None)
        if found is None:
            self.process.kill()
            output = self.process.communicate()[0].decode(errors="replace")
            shutil.rmtree(self.home, ignore_errors=True)
            raise RuntimeError(f"the host did not start:\n{output[-4000:]}")
        self.client: ControlClient = found
        self.serves_after = time.monotonic() - began
        self.url = f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.end()
        self.client.close()
        shutil.rmtree(self.home, ignore_errors=True)

    def info(self) -> HostInfo:
        """The machine as the host sees it now."""
        return self.client.call(ops.HOST)

    def plan(self, request: LaunchRequest) -> LaunchPlan:
        """Return the plan of a start. Raises HostError."""
        return self.client.call(ops.PLAN, request)

    def start(self, plan: LaunchPlan) -> Engine:
        """Start a plan and wait until it is ready. Raises RuntimeError with its last lines when it fails."""
        engine = self.client.call(ops.START, StartRequest(plan=plan.id))
        return self.until(engine.id, {EngineState.READY, EngineState.BUSY}, self._patience)

    def engine(self, engine_id: str) -> Engine:
        """One engine now."""
        return self.client.call(ops.ENGINE, id=engine_id)

    def until(self, engine_id: str, states: set[EngineState], seconds: float) -> Engine:
        """Wait for one of these states; a failure that was not waited for raises RuntimeError."""

        def look() -> Engine | None:
            engine = self.engine(engine_id)
            if engine.state is EngineState.FAILED and EngineState.FAILED not in states:
                said = engine.problem.message if engine.problem else "it failed"
                raise RuntimeError("\n".join((said, *engine.last_lines[-60:])))
            return engine if engine.state in states else None

        return wait_for(look, f"the engine to be {' or '.join(sorted(states))}", seconds)

    def ended(self, job: Job, source: str, seconds: float = 3600.0) -> Job:
        """Wait for the end of a job, and print its steps and what it writes into the log under a source.

        Raises HostError with its error, RuntimeError when it was cancelled.
        """
        said, after = "", 0

        def look() -> Job | None:
            nonlocal said, after
            found = self.client.call(ops.JOB, id=job.id)
            for line in self.client.call(ops.LOGS, LogQuery(source=source, after=after)).lines:
                after = line.number
                print(f"  {source}: {line.text}", flush=True)
            step = found.step
            if step is not None and step.name != said:
                said = step.name
                print(f"  {time.strftime('%H:%M:%S')} {step.number} of {step.of}: {said}", flush=True)
            return found if found.ended else None

        done = wait_for(look, f"the end of {job.title}", seconds)
        if done.error is not None:
            raise HostError.from_problem(done.error)
        if done.state is not JobState.DONE:
            raise RuntimeError(f"{job.title} was cut off")
        return done

    def stop(self, engine: Engine) -> Engine:
        """Stop it in an orderly way."""
        self.client.call(ops.STOP, StopEngine(), id=engine.id)
        return self.until(engine.id, {EngineState.UNLOADED}, _ENDS)

    def end(self) -> int:
        """End the host as Ctrl+C does, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(_ENDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Ask the endpoint as any program of this machine would."""
        with httpx.Client(timeout=_LONGEST_ANSWER, trust_env=False) as http:
            answer = http.post(f"{self.url}/{path}", json=body)
        answer.raise_for_status()
        found = answer.json()
        assert isinstance(found, dict)
        return found

    def stream(self, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
        """The chunks of a streamed answer of the endpoint."""
        with (
            httpx.Client(timeout=_LONGEST_ANSWER, trust_env=False) as http,
            http.stream("POST", f"{self.url}/{path}", json={**body, "stream": True}) as answer,
        ):
            answer.raise_for_status()
            lines = [line[5:].strip() for line in answer.iter_lines() if line.startswith("data:")]
        return [json.loads(line) for line in lines if line != "[DONE]"]

    @contextmanager
    def engine_itself(self, engine: Engine) -> Iterator[httpx.Client]:
        """A client of the engine's own socket, past the endpoint."""
        transport = httpx.HTTPTransport(uds=str(self.folders.run / f"{engine.plan.id}.sock"))
        with httpx.Client(transport=transport, base_url="http://engine", timeout=_LONGEST_ANSWER) as http:
            yield http


def processes_of(engine: Engine) -> list[psutil.Process]:
    """The engine's processes, its leader first."""
    if engine.pid is None:
        return []
    leader = psutil.Process(engine.pid)
    return [leader, *leader.children(recursive=True)]


def alive(processes: Iterable[psutil.Process]) -> list[int]:
    """Those that still run; one that only waits to be collected does not."""
    found = []
    for process in processes:
        try:
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except psutil.NoSuchProcess:
            continue
    return found


def wait_for(look: Callable[[], T | None], what: str, seconds: float) -> T:
    """The first answer that is neither None nor False. Raises RuntimeError when the time is over."""
    end = time.monotonic() + seconds
    while True:
        found = look()
        if found is not None and found is not False:
            return found
        if time.monotonic() > end:
            raise RuntimeError(f"waited {seconds:.0f} s in vain for {what}")
        time.sleep(0.1)
