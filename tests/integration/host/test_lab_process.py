"""The process that measures: a cancel is a cancel, also of one that has to be killed."""

import asyncio
import sys

import pytest

from engine_host.core.log_buffer import LogBuffer
from engine_host.operations.measurements import lab_process
from engine_host.protocol.bench.lab import LabAsk, LabEngine, LabMachine, LabStep, WorkloadName

# FAKE: tells a step, and neither saves nor ends when nobody waits any more.
STUBBORN = """
import json, sys, time
sys.stdin.readline()
step = {"part": "p", "number": 1, "of": 1, "progress": 0.5, "words": "w"}
print(json.dumps({"step": step}), flush=True)
time.sleep(60)
"""


def test_a_cancel_of_one_that_does_not_save_in_time_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab_process, "_SAVING", 0.2)
    monkeypatch.setattr(lab_process, "command_of", lambda program: [sys.executable, "-c", STUBBORN])
    ask = LabAsk(
        workload=WorkloadName.QUICK,
        folder="",
        engine=LabEngine(address="s", model="m"),
        machine=LabMachine(program="1", python="3", system="s"),
        steps=True,
    )

    async def go() -> None:
        begun = asyncio.Event()

        def tell(step: LabStep) -> None:
            begun.set()

        work = asyncio.create_task(lab_process.measured(ask, LogBuffer(lambda event: None), tell))
        await begun.wait()
        work.cancel()
        await work

    with pytest.raises(lab_process.CutShortError) as caught:
        asyncio.run(go())
    assert caught.value.cancelled
    assert caught.value.kept.ids == ()
