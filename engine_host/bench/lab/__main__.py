"""`python -m engine_host.bench.lab`: the process in which a run is carried out, or what was kept is read.

A process of its own: in the host's it would take the time that it measures. The first line of its input is
what is asked (a `LabAsk`); when the input ends, so does the run, as with Ctrl+C. Its output is one line:
`{"run": …}`, `{"page": …}`, `{"comparison": …}` or `{"error": …}`.
"""

import argparse
import asyncio
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel

from engine_host.bench.lab import store
from engine_host.bench.lab.comparing import compared
from engine_host.bench.lab.load import client_of
from engine_host.bench.lab.running import LabRunning
from engine_host.bench.lab.workloads import WORKLOADS
from engine_host.core.errors import HostError
from engine_host.core.keys.in_header import key_in_header
from engine_host.core.visible import visible
from engine_host.protocol.bench.lab import LabAsk, LabRun


def main(words: Sequence[str]) -> int:
    """Carry out `run`, `list FOLDER`, `show FOLDER RUN` or `compare FOLDER A B`; 0, or 1 with an error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("word", choices=["run", "list", "show", "compare"])
    parser.add_argument("folder", nargs="?", default="", help="the data folder")
    parser.add_argument("run", nargs="?", default=store.NEWEST)
    parser.add_argument("other", nargs="?", default=store.NEWEST, help="what it is compared with")
    asked = parser.parse_args(words)
    folder = store.folder_of(Path(asked.folder))
    try:
        if asked.word == "list":
            _print("page", store.page(folder))
        elif asked.word == "show":
            _print("run", store.find(folder, asked.run))
        elif asked.word == "compare":
            _print("comparison", compared(store.find(folder, asked.run), store.find(folder, asked.other)))
        else:
            # The first line alone: what follows is its end, and says that nobody waits any more.
            _print("run", asyncio.run(_run(LabAsk.model_validate_json(sys.stdin.buffer.readline()))))
    except HostError as error:
        _print("error", error.problem)
        return 1
    return 0


async def _run(asked: LabAsk) -> LabRun:
    given = os.environ.get("SNDR_API_KEY")
    client = client_of(
        asked.engine.address,
        socket=asked.socket,
        key=key_in_header(given) if given else None,
    )
    running = LabRunning(asked, WORKLOADS[asked.workload], (lambda text: None) if asked.quiet else _tell)
    async with client:
        work = asyncio.create_task(running.carry_out(client))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, _cancel, work)
        loop.add_reader(sys.stdin.fileno(), _input_ended, loop, work)
        try:
            return await work
        except asyncio.CancelledError:
            # It was cancelled before its first step.
            return running.run
        finally:
            loop.remove_reader(sys.stdin.fileno())


def _cancel(work: "asyncio.Task[LabRun]") -> None:
    # Once: a second Ctrl+C would interrupt the saving.
    if not work.cancelling():
        work.cancel()


def _input_ended(loop: asyncio.AbstractEventLoop, work: "asyncio.Task[LabRun]") -> None:
    if not os.read(sys.stdin.fileno(), 4096):
        loop.remove_reader(sys.stdin.fileno())
        _cancel(work)


def _tell(text: str) -> None:
    """Say what is done now on stderr: the result on stdout stays for programs."""
    print(visible(text), file=sys.stderr, flush=True)


def _print(what: str, value: BaseModel) -> None:
    print(json.dumps({what: value.model_dump(mode="json")}), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
