"""The engine of a launch plan for as long as a measurement lasts: on its socket, without an endpoint."""

import asyncio
import contextlib
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

from engine_host.core.errors import HostError
from engine_host.core.likely_causes import slow_start
from engine_host.engines.adapter import Adapter
from engine_host.engines.process.spawn import EngineProcess
from engine_host.engines.temporary_folder import make_temporary_folder
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import LaunchPlan

_LOOK = 0.1
_GRACE = 10.0
_TAIL = 2_000
_SHOWN = 40


@dataclass(frozen=True, slots=True)
class TemporaryEngine:
    """An engine that answers; `ready_after` in seconds, `ledger` has what its patches told."""

    plan: LaunchPlan
    client: httpx.AsyncClient
    ready_after: float
    ledger: Path


@contextlib.asynccontextmanager
async def temporary_engine(
    plan: LaunchPlan,
    adapter: Adapter,
    run_folder: Path,
    variables: Mapping[str, str] | None = None,
    seconds: float = 600.0,
) -> AsyncIterator[TemporaryEngine]:
    """Start a plan, yield the engine once it answers, and end it for certain with all that it made.

    `variables` are added to the plan's. Raises HostError with the reason for which it did not start, or
    HostError(engine_start_timeout).
    """
    socket = run_folder / f"{plan.id}.sock"
    ledger = run_folder / "ledger" / plan.id
    await asyncio.to_thread(ledger.mkdir, mode=0o700, parents=True, exist_ok=True)
    await asyncio.to_thread(make_temporary_folder, plan.environment)
    with tempfile.TemporaryDirectory(prefix="sndr-") as name:
        began = time.monotonic()
        process = EngineProcess.start(
            plan.argv,
            {**plan.environment, **(variables or {})},
            Path(name) / "engine.log",
            keep=False,
            without=adapter.stripped_environment,
        )
        # An engine closes a connection that was idle for some seconds: one must not be used again just then.
        limits = httpx.Limits(max_connections=None, keepalive_expiry=2.0)
        transport = httpx.AsyncHTTPTransport(uds=str(socket), verify=False, trust_env=False, limits=limits)
        try:
            async with httpx.AsyncClient(transport=transport, base_url="http://engine") as client:
                await _until_healthy(client, process, adapter, plan, seconds)
                yield TemporaryEngine(plan, client, time.monotonic() - began, ledger)
        finally:
            await asyncio.shield(_end(process, adapter, socket, ledger))


async def _until_healthy(
    client: httpx.AsyncClient, process: EngineProcess, adapter: Adapter, plan: LaunchPlan, seconds: float
) -> None:
    deadline = time.monotonic() + seconds
    while not await adapter.healthy(client):
        if not process.running:
            await process.log_written()
            raise HostError.from_problem(await asyncio.to_thread(_explained, process, adapter, plan))
        if time.monotonic() > deadline:
            raise HostError(
                Reason.ENGINE_START_TIMEOUT,
                tr("{plan} did not answer within {seconds:.0f} s.", plan=plan.name, seconds=seconds),
                cause=slow_start(),
                fix="Try again in a minute.",
                evidence={"seconds": seconds, "lines": _lines(process.log)[-_SHOWN:]},
            )
        await asyncio.sleep(_LOOK)


def _explained(process: EngineProcess, adapter: Adapter, plan: LaunchPlan) -> Problem:
    lines = _lines(process.log)
    problem = adapter.explain_exit(process.exit_code, lines[-_TAIL:], plan)
    shown = _up_to(lines, str(problem.evidence.get("line") or ""))
    return problem.model_copy(update={"evidence": {**problem.evidence, "lines": shown}})


def _up_to(lines: Sequence[str], said: str) -> Sequence[str]:
    """Return the lines that lead to the one that explains the end, else the last ones.

    After vLLM's engine core its API server tells a traceback of its own, longer than what is shown.
    """
    place = next((index for index, line in enumerate(lines) if said and said in line), len(lines) - 1)
    return lines[max(0, place + 1 - _SHOWN) : place + 1]


def _lines(log: Path) -> list[str]:
    return log.read_text(encoding="utf-8", errors="replace").splitlines()


async def _end(process: EngineProcess, adapter: Adapter, socket: Path, ledger: Path) -> None:
    await process.stop(_GRACE, leader_only=adapter.stops_by_leader)
    await process.release()
    await asyncio.to_thread(socket.unlink, missing_ok=True)
    for folder in (socket.with_suffix(".tmp"), ledger):
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
