"""Measures what a connection to another machine takes from eight streams: asked there, and over a route here.

`python -m tests.integration.remote.measure_tunnel [fake|llama] [PAUSE] [ROUNDS]` prints tokens a second as
medians with quartiles, in turns (A B B A …), over a real sshd on loopback. `fake` is an engine that writes
as fast as it is read, or a token every PAUSE seconds a stream; `llama` is the demo model.
"""

import asyncio
import json
import math
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import psutil

from engine_host.client.sync import ControlClient
from engine_host.core.paths import Folders
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.launch.plans import LaunchRequest, ServerChoice, StartRequest
from engine_host.protocol.operations import table as ops
from engine_host.protocol.settings import SettingsChange
from tests.conftest import SHARED_CACHE
from tests.hostile.rig.host import FAKE_SERVER, MODEL
from tests.integration.host_process import serving, sndr
from tests.integration.remote.machines import Machines, running_machines
from tests.waiting import wait_until

STREAMS, TOKENS, SECONDS = 8, 5000, 4


def main() -> None:
    """Measure and print."""
    words = [*sys.argv[1:], *("fake", "0", "10")[len(sys.argv) - 1 :]]
    with tempfile.TemporaryDirectory(prefix="sndr-t-") as home, running_machines() as machines:
        os.environ |= {"SNDR_HOME": home, "SNDR_SSH_CONFIG": str(machines.config)}
        os.environ["SNDR_CACHE"] = str(SHARED_CACHE)
        measure(machines, words[0], float(words[1]), int(words[2]))


def measure(machines: Machines, kind: str, pause: float, rounds: int) -> None:
    """Start both hosts and the engine, and ask it in turns."""
    with serving() as here, machines.engine_host():
        assert sndr("host", "add", "gpu", "direct").code == 0
        connected = sndr("host", "connect", "gpu")
        assert connected.code == 0, connected.err
        far = ControlClient(machines.far_folders)
        far.connect()
        start(far, kind, machines.far)
        name = far.call(ops.ENGINES).engines[0].name
        assert sndr("routes", "set", "bench", f"gpu/{name}").code == 0
        ports = [client.call(ops.HOST).endpoint.port or 0 for client in (far, here)]
        ids = [name, "bench"]
        rates: tuple[list[float], list[float]] = ([], [])
        spent: tuple[list[dict[str, float]], list[dict[str, float]]] = ([], [])
        for number in range(-1, rounds):
            for which in (0, 1) if number % 2 else (1, 0):
                before = processor_seconds(machines, here)
                tokens, seconds = asyncio.run(asked(ports[which], ids[which], kind, pause))
                after = processor_seconds(machines, here)
                if number >= 0:
                    rates[which].append(tokens / seconds)
                    spent[which].append({who: (after[who] - before[who]) / tokens * 1e6 for who in after})
        far.close()
    for label, found in zip(("there", "over the route"), rates, strict=True):
        low, middle, high = statistics.quantiles(found, n=4)
        print(f"{label:15} {middle:9.1f} tokens/s (quartiles {low:.1f} to {high:.1f}, {len(found)} rounds)")
    ratios = sorted(b / a for a, b in zip(*rates, strict=True))
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(f"{'ratio':15} {middle:9.3f}          (quartiles {low:.3f} to {high:.3f})")
    low, high = interval(ratios)
    print(f"{'':15} {'':9}          (of the median, 95 %: {low:.3f} to {high:.3f})")
    print("microseconds of processor a token, medians:")
    for label, rounds_of in zip(("there", "over the route"), spent, strict=True):
        of = {who: statistics.median(one[who] for one in rounds_of) for who in rounds_of[0]}
        print(f"{label:15} " + ", ".join(f"{who} {of[who]:.1f}" for who in of))


def interval(ordered: list[float]) -> tuple[float, float]:
    """The closest ordered values between which the median lies with 95 %, however they are spread."""
    count = len(ordered)
    for place in range(count // 2, 0, -1):
        outside = 2 * sum(math.comb(count, below) for below in range(place)) / 2**count
        if outside <= 0.05:
            return ordered[place - 1], ordered[count - place]
    return ordered[0], ordered[-1]


def processor_seconds(machines: Machines, here: ControlClient) -> dict[str, float]:
    """The seconds of processor that each part has used so far."""
    owners = machines.far_folders.read_lock_owner(), Folders.resolve().read_lock_owner()
    far, own = (psutil.Process(owner.pid) for owner in owners if owner is not None)
    engines = [one for one in far.children(recursive=True) if "alias" in " ".join(one.cmdline())]
    ssh = [one for one in own.children(recursive=True) if one.name() == "ssh"]
    sshd = [one for one in machines.target.processes() if one.name() == "sshd"]
    parts = {"engine": engines, "host there": [far], "sshd": sshd, "ssh": ssh, "host here": [own]}
    return {who: sum(sum(one.cpu_times()[:2]) for one in found) for who, found in parts.items()}


def start(far: ControlClient, kind: str, folder: Path) -> None:
    """Start the engine over there."""
    server = ServerChoice.AUTO
    if kind == "fake":
        program = folder / "llama-server"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -I {FAKE_SERVER} "$@"\n', encoding="utf-8")
        program.chmod(0o755)
        far.call(ops.CHANGE_SETTINGS, SettingsChange(values={"engine.own_server": str(program)}))
        server = ServerChoice.OWN
    overrides = Overrides(context=4096, streams=STREAMS)
    plan = far.call(ops.PLAN, LaunchRequest(model=str(MODEL), server=server, overrides=overrides))
    engine = far.call(ops.START, StartRequest(plan=plan.id))
    assert wait_until(lambda: far.call(ops.ENGINE, id=engine.id).state.value in ("ready", "busy"), 120)


async def asked(port: int, model: str, kind: str, pause: float) -> tuple[int, float]:
    """Return the tokens of all streams together, and the seconds that they took."""
    body: dict[str, object] = {
        "model": model, "stream": True, "max_tokens": 256,
        "messages": [{"role": "user", "content": "Write a long story."}],
    }  # fmt: skip
    if kind == "fake":
        body["fake"] = {"tokens": int(SECONDS / pause) if pause else TOKENS, "pause": pause}
    began = time.perf_counter()
    counts = await asyncio.gather(*(stream(port, json.dumps(body).encode()) for _ in range(STREAMS)))
    return sum(counts), time.perf_counter() - began


async def stream(port: int, body: bytes) -> int:
    """Ask once and count the frames."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    count, last, first = 0, b"", b""
    while chunk := await reader.read(1 << 16):
        first = first or chunk
        count += (last + chunk).count(b'"delta"') - last.count(b'"delta"')
        last = chunk[-6:]
    writer.close()
    assert count > 10, first
    return count


if __name__ == "__main__":
    main()
