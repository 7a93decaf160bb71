"""`python -m engine_host.bench.lab`: the process in which a run is carried out, or what was kept is read.

A process of its own: in the host's it would take the time that it measures. The first line of its input is
what is asked (a `LabAsk`); when the input ends, so does the run, as with Ctrl+C. The last line of its
output is `{"run": …}`, `{"page": …}`, `{"comparison": …}`, `{"kept": …}`, `{"repair": …}` or `{"error": …}`.
"""

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from pydantic import BaseModel

from engine_host.bench.gpu.traces import summary
from engine_host.bench.kept import runs as kept_runs
from engine_host.bench.kept import sweeps as kept_sweeps
from engine_host.bench.kept.repair import repair
from engine_host.bench.lab.chosen import chosen
from engine_host.bench.lab.comparing import compared
from engine_host.bench.lab.load import client_of
from engine_host.bench.lab.running import LabRunning, carry_out, new_seed
from engine_host.bench.lab.workloads import workload_hash
from engine_host.core.errors import HostError
from engine_host.core.keys.in_header import key_in_header
from engine_host.core.outside.run_file import run_of_file
from engine_host.core.visible import visible
from engine_host.protocol.bench.lab import LabAsk, LabRun, LabStep

_SWEEPS = ("sweeps", "sweep")


def main(words: Sequence[str]) -> int:
    """Carry out a word with the folder, and the run or the two, that it is about; 0, or 1 with an error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "word",
        choices=["run", "list", "show", "read", "trace", "compare", "remove", "mark", "repair", *_SWEEPS],
    )
    parser.add_argument("folder", nargs="?", default="", help="the data folder")
    parser.add_argument("run", nargs="?", default=kept_runs.NEWEST)
    parser.add_argument("other", nargs="?", default=kept_runs.NEWEST, help="what it is compared with")
    asked = parser.parse_args(words)
    folder = kept_runs.folder_of(Path(asked.folder))
    try:
        if asked.word == "list":
            _print("page", kept_runs.page(folder))
        elif asked.word == "show":
            _print("run", kept_runs.find(folder, asked.run))
        elif asked.word == "sweeps":
            _print("page", kept_sweeps.page(folder))
        elif asked.word == "sweep":
            _print("sweep", kept_sweeps.report(folder, asked.run))
        elif asked.word == "trace":
            _print("trace", summary(Path(asked.folder), int(asked.run)))
        elif asked.word == "read":
            _print("run", run_of_file(Path(asked.run)))
        elif asked.word == "mark":
            kept_runs.mark(folder, asked.run, on=asked.other == "on")
            _print("page", kept_runs.page(folder))
        elif asked.word == "repair":
            _print("repair", repair(folder))
        elif asked.word == "remove":
            kept_runs.remove(folder, asked.run)
            _print("page", kept_runs.page(folder))
        elif asked.word == "compare":
            _print("comparison", compared(_found(folder, asked.run), _found(folder, asked.other)))
        else:
            # The first line alone: what follows is its end, and says that nobody waits any more.
            ask = LabAsk.model_validate_json(sys.stdin.buffer.readline())
            runs = asyncio.run(_run(ask))
            if ask.steps:
                _print("kept", kept_runs.kept(runs))
            elif len(runs) == 2:
                _print("comparison", compared(*runs))
            else:
                _print("run", runs[0])
    except HostError as error:
        _print("error", error.problem)
        return 1
    return 0


def _found(folder: Path, name: str) -> LabRun:
    """Return a run by its name, or out of a file by its path. Raises HostError."""
    return run_of_file(Path(name)) if name.endswith(".json") else kept_runs.find(folder, name)


async def _run(asked: LabAsk) -> list[LabRun]:
    given = os.environ.get("SNDR_API_KEY")
    key = key_in_header(given) if given else None
    subjects = [(asked.engine, asked.socket)]
    if asked.against is not None:
        subjects.append((asked.against, asked.against_socket))
    workload = chosen(asked, asked.engine.context)
    before = None
    if asked.resume is not None:
        folder = kept_runs.folder_of(asked.folder)
        before = kept_runs.find_cut(folder, asked.resume, asked.engine, workload_hash(workload))
    seed = before.seed if before is not None else new_seed() if asked.seed is None else asked.seed
    async with AsyncExitStack() as clients:
        sides = [
            LabRunning(
                asked,
                engine,
                workload,
                await clients.enter_async_context(client_of(engine.address, socket=socket, key=key)),
                seed,
                before,
            )
            for engine, socket in subjects
        ]
        work = asyncio.create_task(carry_out(sides, partial(_step, asked)))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, _cancel, work, sides)
        loop.add_reader(sys.stdin.fileno(), _input_ended, loop, work, sides)
        try:
            return await work
        except asyncio.CancelledError:
            # It was cancelled before its first step.
            return [side.run for side in sides]
        finally:
            loop.remove_reader(sys.stdin.fileno())


def _cancel(work: "asyncio.Task[list[LabRun]]", sides: Sequence[LabRunning]) -> None:
    # Once: a second Ctrl+C would interrupt the saving.
    if not work.cancelling():
        for side in sides:
            side.cancelled_at = time.perf_counter()
        work.cancel()


def _input_ended(
    loop: asyncio.AbstractEventLoop, work: "asyncio.Task[list[LabRun]]", sides: Sequence[LabRunning]
) -> None:
    if not os.read(sys.stdin.fileno(), 4096):
        loop.remove_reader(sys.stdin.fileno())
        _cancel(work, sides)


def _step(asked: LabAsk, step: LabStep) -> None:
    """Tell a round: to a program on stdout, to a person on stderr, where the result stays for programs."""
    if asked.steps:
        _print("step", step)
    elif not asked.quiet:
        print(visible(f"{step.part}, {step.words}"), file=sys.stderr, flush=True)


def _print(what: str, value: BaseModel) -> None:
    print(json.dumps({what: value.model_dump(mode="json")}), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
