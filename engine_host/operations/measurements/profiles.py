"""Profiles of vLLM's steps through its own routes, where the start of an engine allowed it."""

import asyncio
import json
import re
import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx

from engine_host.bench.lab.load import ask, client_of
from engine_host.core.errors import HostError
from engine_host.core.jobs import JobControl, JobRunner
from engine_host.core.likely_causes import silent_engine
from engine_host.core.outside import answers
from engine_host.core.paths import Folders
from engine_host.operations.measurements.engine_choice import ready_engine
from engine_host.operations.measurements.lab_process import read_by_lab
from engine_host.operations.measurements.measured_engine import socket_of
from engine_host.operations.performs import performs
from engine_host.protocol.bench.profiles import ProfileEngine, ProfileReport, TraceSummary
from engine_host.protocol.engines import Engine
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.jobs import Job, JobKind
from engine_host.protocol.language import tr
from engine_host.protocol.operations import bench as ops

_FLAG = "--profiler-config"
_SKIPPED = 2
_MOST = 1 << 20
_SECONDS = 300.0
_WRITTEN = 60.0
_LOOK = 0.25
_QUESTION = "Write a long essay on how attention works in transformer language models."


class ProfileOperations:
    """Profiles the engines of this host, one at a time and never beside a measurement."""

    def __init__(self, jobs: JobRunner, folders: Folders, alive: Callable[[], Sequence[Engine]]) -> None:
        self._jobs = jobs
        self._folders = folders
        self._alive = alive

    @performs(ops.PROFILE_ENGINE)
    def profile(self, asked: ProfileEngine) -> Job:
        """Profile as a job whose result is a ProfileReport.

        Raises HostError: not_found, no_engine_runs, engine_not_ready, conflict where several could be meant,
        unsupported for an engine whose start allowed no profiler.
        """
        engine = ready_engine(self._alive(), asked.engine)
        folder = traces_of(engine)
        asked = asked.model_copy(update={"engine": engine.name})
        return self._jobs.start(
            JobKind.BENCH_PROFILE,
            tr("Profile {engine}", engine=engine.name),
            # Beside a measurement it would make the figures worse.
            "bench",
            asked.command,
            lambda control: self._carry_out(control, engine, folder, asked),
        )

    async def _carry_out(
        self, control: JobControl, engine: Engine, folder: Path, asked: ProfileEngine
    ) -> dict[str, Any]:
        began = time.time()
        prefix = f"sndr-{secrets.token_hex(4)}"
        socket = socket_of(engine, self._folders.run)
        control.step(1, 3, tr("Record"), tr("{steps} steps", steps=asked.steps), None)
        async with client_of(socket, socket=socket) as client:
            bounds = {"profile_prefix": prefix, "delay_iterations": _SKIPPED, "max_iterations": asked.steps}
            await _post(client, "/start_profile", bounds)
            try:
                answer = await ask(
                    client,
                    engine.name,
                    [{"role": "user", "content": _QUESTION}],
                    max_tokens=asked.steps + 2 * _SKIPPED,
                    seed=1,
                    sampling={"temperature": 0.0},
                    # It has to go on for as many steps as are recorded.
                    more={"ignore_eos": True},
                )
            finally:
                # Also after a cancel: an engine that goes on recording is a slow one.
                control.step(2, 3, tr("Write the trace"), "", None)
                await asyncio.shield(_post(client, "/stop_profile", None))
        if answer.error:
            raise HostError(
                Reason.ENGINE_NOT_READY,
                tr("{engine} did not answer: {error}", engine=engine.name, error=answer.error),
                cause=silent_engine(),
                fix=Fix(text="See what the engine says.", command="sndr logs"),
            )
        trace = await _written(folder, prefix, began)
        control.step(3, 3, tr("Sum up by kernel"), trace.name, None)
        summary = TraceSummary.model_validate(
            (await read_by_lab("trace", str(trace), str(asked.steps)))["trace"]
        )
        return ProfileReport(
            engine=engine.id,
            name=engine.name,
            started_at=began,
            steps=asked.steps,
            of=summary.of,
            busy_ms=summary.busy_ms,
            kernels=summary.kernels,
            trace=str(trace),
            command=asked.command,
        ).model_dump(mode="json")


def traces_of(engine: Engine) -> Path:
    """Return the folder into which an engine's profiler writes. Raises HostError(unsupported)."""
    words = list(engine.plan.argv)
    given = [word.partition("=")[2] for word in words if word.startswith(f"{_FLAG}=")]
    given += [words[place + 1] for place, word in enumerate(words[:-1]) if word == _FLAG]
    found: dict[str, Any] = {}
    try:
        said = json.loads(given[-1]) if given else {}
        found = said if isinstance(said, dict) else {}
    except ValueError:
        pass
    folder = found.get("torch_profiler_dir")
    if engine.engine == "vllm" and found.get("profiler") == "torch" and isinstance(folder, str) and folder:
        return Path(folder)
    how = f'--set \'extra_arguments={_FLAG}={{"profiler":"torch","torch_profiler_dir":"/tmp/traces"}}\''
    raise HostError(
        Reason.UNSUPPORTED,
        tr("The start of {engine} allowed no profiler.", engine=engine.name)
        if engine.engine == "vllm"
        # No start of it would.
        else tr("{engine} has no profiler that can be asked for.", engine=engine.engine),
        cause="vLLM has routes for one only where its start names it; llama.cpp has none.",
        fix=Fix(text="Start it with one.", command=f"{engine.plan.command} {how}")
        if engine.engine == "vllm"
        else None,
        evidence={"engine": engine.id},
    )


async def _post(client: httpx.AsyncClient, path: str, body: dict[str, Any] | None) -> None:
    """Ask one of the profiler's routes. Raises HostError(engine_not_ready) where it refuses."""
    try:
        answer = await answers.fetch(client, path, most=_MOST, seconds=_SECONDS, json=body or {})
    except (httpx.HTTPError, TimeoutError, answers.AnswerError) as error:
        raise HostError(
            Reason.ENGINE_NOT_READY,
            tr("{path} was not answered: {error}", path=path, error=error),
            fix=Fix(text="See what the engine says.", command="sndr logs"),
        ) from error
    if not answer.is_success:
        raise HostError(
            Reason.ENGINE_NOT_READY,
            tr("{path} was answered with {status}.", path=path, status=answer.status),
            cause=answer.text[:300],
            fix=Fix(text="See what the engine says.", command="sndr logs"),
        )


async def _written(folder: Path, prefix: str, began: float) -> Path:
    """Wait for the trace of the workers, and return the largest. Raises HostError(not_found)."""
    deadline = time.monotonic() + _WRITTEN
    size = -1
    while True:
        found = await asyncio.to_thread(_traces, folder, prefix, began)
        if found and found[0][0] == size:
            return found[0][1]
        size = found[0][0] if found else -1
        if time.monotonic() > deadline:
            raise HostError(
                Reason.NOT_FOUND,
                tr("The profiler wrote no trace into {folder}.", folder=folder),
                fix=Fix(text="See what the engine says.", command="sndr logs"),
                evidence={"folder": str(folder)},
            )
        await asyncio.sleep(_LOOK)


def _traces(folder: Path, prefix: str, began: float) -> list[tuple[int, Path]]:
    """Return the traces that were written since, the largest first; of ours, where the prefix is known."""
    found = []
    for path in folder.glob("*") if folder.is_dir() else ():
        if re.search(r"trace\.json(\.gz)?$", path.name) and path.stat().st_mtime >= began - 1:
            found.append((prefix in path.name, path.stat().st_size, path))
    return [(size, path) for _, size, path in sorted(found, reverse=True)]
