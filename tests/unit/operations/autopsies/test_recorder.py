"""The flight recorder: engines are FAKE here; history, request log and files are real."""

import time
from pathlib import Path

import pytest

from engine_host.core.diagnosis.listing import page_of
from engine_host.core.diagnosis.shelf import AutopsyShelf
from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.gateway.request_log import RequestLog
from engine_host.operations.autopsies import recorder as recorder_module
from engine_host.operations.autopsies.recorder import FlightRecorder
from engine_host.protocol.bench.autopsy import Ending
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.events import EngineStateEvent
from engine_host.protocol.launch.fit import FitReport, FitRequest
from engine_host.telemetry.gpus import Gpus
from engine_host.telemetry.history import History
from tests.plan_samples import engine_of, plain_plan
from tests.unit.asynchronous import run
from tests.unit.core.diagnosis.samples import problem

STAGES = ({"name": "Start process", "started_at": 9000.0},)


async def no_fit(_asked: FitRequest) -> FitReport:
    raise HostError(Reason.MODEL_FILE_MISSING, "The model is gone.")


def dead(**fields: object) -> Engine:
    plain = {"ended_at": 10_000.5, "stages": STAGES, "problem": problem(exit_code=137)}
    return engine_of(plain_plan(), EngineState.FAILED, **{**plain, **fields})


def recorder_of(folder: Path, history: History) -> FlightRecorder:
    """A recorder that has heard nothing yet."""
    events = EventLog()
    requests = RequestLog(events.publish, lambda _: 0, lambda _: 0)
    return FlightRecorder(AutopsyShelf(folder), history, requests, Gpus(None), no_fit, events)


def test_requests_that_come_and_go_read_no_counters_of_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[None] = []
    monkeypatch.setattr(recorder_module, "oom_kills", lambda: looks.append(None))
    recorder = recorder_of(tmp_path, History())
    for state in (EngineState.STARTING, *[EngineState.BUSY, EngineState.READY] * 5):
        recorder.take(EngineStateEvent(engine=engine_of(plain_plan(), state)))
    assert len(looks) == 1, "the count before its end is of its readings, or else of its start"


def recorded(folder: Path, *engines: Engine) -> AutopsyShelf:
    """The folder after these engines changed their states."""

    async def work() -> AutopsyShelf:
        history = History(clock=lambda: 10_001.0)
        for at in range(9_000, 10_003):
            history.add(float(at), {"ram.used": float(at), "engine.other.memory": 1.0})
            if at <= 10_000:
                history.add(float(at), {"engine.engine-1.memory": 2.0})
        recorder = recorder_of(folder, history)
        for engine in engines:
            recorder.take(EngineStateEvent(engine=engine))
        await recorder.close()
        return recorder.shelf

    return run(work())


def test_it_keeps_ten_minutes_of_what_is_about_the_engine_up_to_its_end(tmp_path: Path) -> None:
    shelf = recorded(tmp_path, dead(last_lines=["x" * 5000] * 300))
    record = shelf.open(shelf.ids()[0])
    assert (record.exit_code, record.signal) == (137, "SIGKILL")
    assert record.fit is None
    spans = {one.name: (one.first, one.first + record.step * len(one.values)) for one in record.series}
    assert spans == {"ram.used": (9_400.0, 10_001.0), "engine.engine-1.memory": (9_400.0, 10_001.0)}
    assert {len(line) for line in record.engine.last_lines} == {1000}
    assert len(record.engine.last_lines) == 200


def test_who_sent_a_sigkill_is_judged_by_what_was_measured(tmp_path: Path) -> None:
    async def work() -> list[Problem]:
        history, now = History(), time.time()
        history.add(now, {"ram.used": 40.0, "ram.total": 100.0})
        recorder = recorder_of(tmp_path, history)
        engine = dead(ready_at=1.0)
        told = problem(exit_code=-9)
        return [
            await recorder.explain(engine, told),
            await recorder.explain(engine, problem(Reason.PORT_IN_USE, exit_code=1)),
        ]

    killed, other = run(work())
    assert "RAM was 40 % full" in killed.message
    assert killed.evidence["ram_share"] == 0.4
    assert other == problem(Reason.PORT_IN_USE, exit_code=1)


def test_an_end_that_was_wanted_has_none(tmp_path: Path) -> None:
    stopped = dead().model_copy(update={"state": EngineState.UNLOADED})
    assert recorded(tmp_path, stopped).ids() == []


def test_a_start_that_is_refused_is_no_death(tmp_path: Path) -> None:
    refused = dead(problem=problem(Reason.NOT_GGUF), stages=(), ready_at=None)
    assert recorded(tmp_path, refused, dead()).ids() == recorded(tmp_path).ids()
    assert [one.ending for one in page_of(recorded(tmp_path)).autopsies] == [Ending.KILLED]


def test_a_folder_that_cannot_be_made_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert recorded(tmp_path / "file" / "autopsies", dead()).ids() == []
