"""Hundreds of streams at once for a long time: nothing of the host grows, and no request is lost.

The engine is a FAKE one that writes as fast as it is asked to; host, endpoint, sockets and clients are real.
"""

import asyncio
import contextlib
import json
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from engine_host.protocol.engines import EngineState
from engine_host.protocol.operations import table as ops
from tests.hostile import asked
from tests.hostile.rig.host import Look, WatchedHost, watched_host
from tests.hostile.rig.trend import Trend
from tests.hostile.soak.clients import Clients, Told
from tests.hostile.soak.outcomes import Account

pytestmark = pytest.mark.soak
MIB = 1 << 20
USUAL_SECONDS = 60.0
USUAL_STREAMS = 500
SLOTS = 256
MOST_GROWTH = {"memory": 20.0 * MIB, "descriptors": 25.0, "threads": 4.0, "tasks": 50.0}
"""Over the second half. Memory is asked back from 16 MiB on; the others go up and down with the clients."""
MOST_LEFT = 25 * MIB
"""Over what the rings hold by intention, when all clients are gone: 16 MiB of events, and `rings`."""

LENS = 16 * MIB
"""What the prefix lens keeps by intention: marks of 100,000 parts of prompts, turns of 100 conversations."""


def rings(engines: int) -> float:
    """Bytes that each engine fills by intention: its log lines, 32 MiB in all, and its series, 19 MB."""
    return min(32, 3.0 * engines) * MIB + min(19.0, 0.8 * engines) * MIB


@dataclass
class Run:
    """The measurements of a soak."""

    began: float = field(default_factory=time.monotonic)
    looks: list[tuple[float, Look, int]] = field(default_factory=list)
    starts: int = 1
    crashes: int = 0

    def trend(self, name: str) -> Trend:
        """Fit a line through one measurement over the second half."""
        half = self.looks[len(self.looks) // 2 :]
        return Trend.of([at for at, _, _ in half], [float(getattr(look, name)) for _, look, _ in half])

    def allowed(self, name: str) -> float:
        """Return what a measurement may grow by over the second half."""
        filled = rings(self.looks[-1][2]) - rings(self.looks[len(self.looks) // 2][2])
        return MOST_GROWTH[name] + (filled if name == "memory" else 0.0)


async def watch(host: WatchedHost, run: Run, seconds: float) -> None:
    """Look into the host, and restart or kill its engine, until the time is over."""
    between = min(60.0, max(15.0, seconds / 60))
    next_start = between
    while (now := time.monotonic() - run.began) < seconds:
        run.looks.append((now, await asyncio.to_thread(host.look), run.starts))
        if now >= next_start and now < seconds - 8:
            if run.starts % 2:
                await crash(host)
                run.crashes += 1
            await asyncio.to_thread(host.start_engine, SLOTS, 2_000)
            run.starts += 1
            next_start = time.monotonic() - run.began + between
        await asyncio.sleep(min(2.0, seconds / 60))


async def crash(host: WatchedHost) -> None:
    """Have the engine end in the middle of everything, and wait until the host has seen it."""
    # In a thread: 500 clients live on this loop.
    before = (await asyncio.to_thread(host.client.call, ops.ENGINES)).engines[0]
    message = {"messages": [{"role": "user", "content": "x"}], "fake": {"crash": True}}
    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
        with contextlib.suppress(httpx.HTTPError):
            await client.post(f"http://127.0.0.1:{host.port}/v1/chat/completions", json=message)
    await asyncio.to_thread(host.wait_for, before.id, EngineState.FAILED)


async def soak(host: WatchedHost, run: Run, seconds: float, streams: int) -> Told:
    """Run clients and watch the host; return when the last client has its answer."""
    clients = Clients(host.port, streams, asked.fuzz_seed())
    working = asyncio.create_task(clients.run())
    try:
        await watch(host, run, seconds)
    finally:
        clients.end()
        await working
    return clients.told


def table(run: Run, told: Told, account: Account, before: Look, after: Look) -> str:
    """Return the figures of a soak."""
    took = run.looks[-1][0]
    waits, lost = sorted(told.first_bytes), account.without(told.ids)
    states = Counter(state.value for state in account.states.values())
    lines = [
        f"{told.requests} requests in {took / 60:.1f} min, {run.starts} starts of the FAKE engine, "
        f"{run.crashes} after a crash",
        f"first byte: median {waits[len(waits) // 2]:.2f} s, 99 % {waits[int(len(waits) * 0.99)]:.2f} s",
        f"in the request log: {len(account.states)}, {json.dumps(states)}",
        f"without an outcome: {len(account.without_outcome())}; answered and not in the log: {len(lost)}",
        "",
        *(
            f"{kind:<12} {counts.total():>7}  {_shown(counts)}"
            for kind, counts in sorted(told.outcomes.items())
        ),
        "",
        f"{'':<12}{'before':>9}{'middle':>9}{'last':>9}{'after':>9}   growth in the second half",
    ]
    for name in MOST_GROWTH:
        unit, digits = (MIB, 1) if name == "memory" else (1, 0)
        line, middle = run.trend(name), getattr(run.looks[len(run.looks) // 2][1], name)
        figures = (getattr(before, name), middle, line.last, getattr(after, name))
        shown = "".join(f"{figure / unit:>9.{digits}f}" for figure in figures)
        growth = (
            f"{line.growth / unit:+.1f} ± {line.error / unit:.1f} (allowed {run.allowed(name) / unit:.0f})"
        )
        lines.append(f"{name:<12}{shown}   {growth}")
    return "\n".join(lines)


def _shown(counts: Counter[str]) -> str:
    return ", ".join(f"{outcome} {count}" for outcome, count in counts.most_common())


def test_nothing_grows_and_no_request_is_lost(tmp_path: Path) -> None:
    seconds, streams = asked.soak_seconds(USUAL_SECONDS), asked.soak_streams(USUAL_STREAMS)
    run = Run()
    with watched_host(tmp_path) as host:
        before = host.look()
        account = Account(host.folders, after=host.client.call(ops.VERSION).seq)
        host.start_engine(SLOTS, 2_000)
        run.began = time.monotonic()
        told = asyncio.run(soak(host, run, seconds, streams))
        end = time.monotonic() + 60
        most = before.memory + 16 * MIB + LENS + rings(run.starts) + MOST_LEFT
        after = host.look()

        def settled() -> bool:
            few = after.tasks <= before.tasks + 8 and after.descriptors <= before.descriptors + 12
            return few and after.memory <= most

        while not settled() and time.monotonic() < end:
            time.sleep(0.5)
            after = host.look()
        live = [one for one in account.without_outcome() if one in account.states]
        host.process.terminate()
        account.wait()
        log = host.log()
    print(f"\n{table(run, told, account, before, after)}\n")
    assert not told.faults, f"{len(told.faults)} faults:\n" + "\n".join(told.faults[:10])
    assert live == [], "requests without an outcome when all clients were gone"
    assert account.missed == 0, "the events of the requests were not all read"
    assert account.again == []
    assert account.without(told.ids) == {}, "a request was answered that the log does not know"
    assert "Traceback" not in log, log[log.index("Traceback") - 500 :][:3_000]
    for name in MOST_GROWTH:
        assert run.trend(name).is_flat(run.allowed(name)), (name, run.trend(name))
    assert after.memory <= most, (before, after)
    assert after.descriptors <= before.descriptors + 12
    assert after.tasks <= before.tasks + 8
