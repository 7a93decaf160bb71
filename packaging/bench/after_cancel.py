"""Measures how long an engine is still at work after a measurement of the bench lab was cancelled.

`python packaging/bench/after_cancel.py [--vllm ENVIRONMENT] [--tries N] [--workload NAME] [--part NAME]
[--at-work N] [--context N] [--batched-tokens N]`. A host of its own starts the bundled model, `bench.run`
begins, and once the engine's own counters show so many requests (and a moment more) the job is cancelled.
Seconds are from the host's answer to the cancel until the counters show no request, and beside them those of
the engine's processor, which a busy machine does not lengthen, and what the job says. Exit code 1
where one is above a second.
"""

import argparse
import asyncio
import contextlib
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import psutil

from engine_host.bench.lab.idle import requests_at_work
from engine_host.client.sync import ControlClient
from engine_host.core.package_data import resources
from engine_host.core.paths import Folders
from engine_host.protocol.bench.lab import RunBench, WorkloadName
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.jobs import Job
from engine_host.protocol.launch.plans import EngineKind, LaunchRequest, StartRequest
from engine_host.protocol.operations import bench as bench_ops
from engine_host.protocol.operations import table as ops

LIMIT = 1.0
_LONGEST = 60.0
_LOOK = 0.01


@contextlib.contextmanager
def host() -> Iterator[ControlClient]:
    """A host in folders of its own."""
    with tempfile.TemporaryDirectory(prefix="sndr-c-") as home, socket.socket() as free:
        os.environ["SNDR_HOME"] = home
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
        free.close()
        words = [sys.executable, "-m", "engine_host", "serve", "--json", "--port", port]
        process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        try:
            assert process.stdout is not None
            process.stdout.readline()
            client = ControlClient(Folders.resolve())
            client.connect()
            with client:
                yield client
        finally:
            process.terminate()
            process.communicate(timeout=60)


def started(
    client: ControlClient, vllm: str | None, context: int | None, batched_tokens: int | None
) -> Engine:
    """Start the bundled model and wait until it serves."""
    request = LaunchRequest(
        model="sndr-demo" if vllm else str(next((resources() / "models").rglob("*.gguf"))),
        engine=EngineKind.VLLM if vllm else EngineKind.LLAMA_CPP,
        installation=vllm,
        overrides=Overrides(
            context=context or 4096, streams=16, kv_cache_gib=1, batched_tokens=batched_tokens
        )
        if vllm
        else Overrides(context=context or 16384, streams=4, prompt_batch=batched_tokens),
    )
    plan = client.call(ops.PLAN, request)
    engine = client.call(ops.START, StartRequest(plan=plan.id))
    while engine.state is not EngineState.READY:
        if engine.state is EngineState.FAILED:
            raise SystemExit(f"{engine.problem}")
        time.sleep(0.2)
        engine = client.call(ops.ENGINE, id=engine.id)
    return engine


def at_work(engine: Engine) -> int:
    """Return the requests that the engine says to run or to hold back."""
    path = str(Folders.resolve().run / f"{engine.plan.id}.sock")

    async def ask() -> int | None:
        transport = httpx.AsyncHTTPTransport(uds=path)
        async with httpx.AsyncClient(transport=transport, base_url="http://engine") as client:
            return await requests_at_work(client, engine.engine, _LONGEST)

    found = asyncio.run(ask())
    if found is None:
        raise SystemExit(f"{engine.name} does not say what is at work.")
    return found


def spent(engine: Engine) -> float:
    """Return the seconds of processor time that its processes took until now."""
    leader = psutil.Process(engine.pid)
    times = [one.cpu_times() for one in (leader, *leader.children(recursive=True))]
    return sum(one.user + one.system for one in times)


@dataclass
class Try:
    """A cancel: seconds until nothing was at work, those of its processor, and what was at work before."""

    passed: float
    processor: float
    before: int
    job: Job


def one_try(client: ControlClient, engine: Engine, asked: RunBench, least: int) -> Try:
    """Cancel a measurement at some moment, and watch the engine."""
    job = client.call(bench_ops.RUN_BENCH, asked)
    while at_work(engine) < least:
        time.sleep(_LOOK)
    time.sleep(random.uniform(0.0, 2.0))
    before = at_work(engine)
    client.call(ops.CANCEL_JOB, id=job.id)
    began, processor = time.monotonic(), spent(engine)
    while at_work(engine) and time.monotonic() - began < _LONGEST:
        time.sleep(_LOOK)
    passed, processor = time.monotonic() - began, spent(engine) - processor
    while not (job := client.call(ops.JOB, id=job.id)).ended:
        time.sleep(_LOOK)
    return Try(passed, processor, before, job)


def main() -> int:
    """Measure and print; 0 where every cancel left it idle within a second."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vllm", metavar="ENVIRONMENT", help="vLLM of this environment, not llama.cpp")
    parser.add_argument("--tries", type=int, default=6)
    parser.add_argument("--workload", type=WorkloadName, default=WorkloadName.SERVING)
    parser.add_argument("--part", default="burst")
    parser.add_argument("--at-work", type=int, default=5, help="requests at work before it is cancelled")
    parser.add_argument("--context", type=int)
    parser.add_argument("--batched-tokens", type=int, help="tokens of one step (llama.cpp: of a batch)")
    given = parser.parse_args()
    found: list[Try] = []
    with host() as client:
        engine = started(client, given.vllm, given.context, given.batched_tokens)
        asked = RunBench(workload=given.workload, only=(given.part,) if given.part else ())
        for _ in range(given.tries):
            found.append(one := one_try(client, engine, asked, given.at_work))
            print(
                f"{one.passed:.2f} s, {one.processor:.2f} of them at work, {one.before} requests before, "
                f"load {os.getloadavg()[0]:.1f}; {one.job.left}",
                flush=True,
            )
    for what, values in (
        ("idle after", [one.passed for one in found]),
        ("its processor", [one.processor for one in found]),
    ):
        middle = statistics.median(values)
        print(f"{engine.engine}: {what} {middle:.2f} s (median), {min(values):.2f} to {max(values):.2f}")
    return int(max(one.passed for one in found) > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
