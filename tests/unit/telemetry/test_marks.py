"""The marks of the graphs: one for each thing that happened, over restarts of the host and damaged ones."""

import logging
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from engine_host.core.event_log import EventLog
from engine_host.core.store import Store
from engine_host.daemon.host_log import tell_in_log
from engine_host.protocol.engines import Engine, EngineState, Verification
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.events import EngineStateEvent, JobDoneEvent, JobStepEvent, PatchResultEvent
from engine_host.protocol.jobs import Job, JobKind, JobState
from engine_host.protocol.patches import PatchOutcome, PatchReason, PatchResult, ProcessRole
from engine_host.protocol.telemetry import Mark, MarkKind
from engine_host.telemetry.marks import MOST_MARKS, MarkBook
from tests.views.samples import host as samples

NOW = 1_795_000_000.0
VERIFIED = Verification(model_listed=True, token_generated=True, ready_after=9.5)
"""Half a second less than from the question to the answer: the start has the length that the engine tells."""


def book(folder: Path) -> tuple[MarkBook, EventLog, Store]:
    store, events = Store(folder / "store.sqlite"), EventLog()
    return MarkBook(store, events, clock=lambda: NOW), events, store


def engine(state: EngineState, **values: Any) -> Engine:
    plain = {"pid": 7, "created_at": NOW - 60, "ready_at": None, "ended_at": None, "problem": None}
    return samples.engine(state).model_copy(update=plain | values)


def told(marks: tuple[Mark, ...]) -> list[tuple[MarkKind, float]]:
    return [(mark.kind, mark.at) for mark in marks]


def test_the_log_of_the_host_has_a_line_of_each_engine_and_job(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _, events, store = book(tmp_path)
    events.listen(tell_in_log)
    why = Problem(reason=Reason.OUT_OF_MEMORY, message="It wants 40 GiB.")
    job = Job(id="j", kind=JobKind.ENGINE_START, title="Start two", touches="", state=JobState.FAILED,
              created_at=NOW, started_at=NOW, ended_at=NOW + 2, error=why)  # fmt: skip
    with caplog.at_level(logging.INFO):
        events.publish(
            EngineStateEvent(engine=engine(EngineState.READY, ready_at=NOW - 50, verified=VERIFIED))
        )
        refused = engine(EngineState.FAILED, id="e-2", name="two", pid=None, stages=(), problem=why)
        events.publish(EngineStateEvent(engine=refused))
        events.publish(JobDoneEvent(job=job))
    assert [(line.levelname, line.getMessage()) for line in caplog.records] == [
        ("INFO", "sndr-demo started (llama.cpp) (engine-1)"),
        ("INFO", "sndr-demo is ready after 9.5 s (engine-1)"),
        ("WARNING", "two was refused its start: It wants 40 GiB. (e-2)"),
        ("WARNING", "Start two: out_of_memory after 2.0 s: It wants 40 GiB."),
    ]
    store.close()


def test_an_engine_is_marked_once_when_it_starts_is_ready_and_stops(tmp_path: Path) -> None:
    marks, events, store = book(tmp_path)
    ready = {"ready_at": NOW - 50, "verified": VERIFIED}
    for one in (
        engine(EngineState.PREPARING, pid=None),
        engine(EngineState.STARTING),
        engine(EngineState.READY, **ready),
        engine(EngineState.BUSY, **ready),
        engine(EngineState.STOPPING, **ready),
        engine(EngineState.UNLOADED, ended_at=NOW - 10, **ready),
    ):
        events.publish(EngineStateEvent(engine=one))
    found = marks.since(None)
    assert told(found) == [
        (MarkKind.STARTED, NOW - 60),
        (MarkKind.READY, NOW - 50),
        (MarkKind.STOPPED, NOW - 10),
    ]
    assert found[1].text == "sndr-demo is ready after 9.5 s"
    assert {mark.engine for mark in found} == {"engine-1"}
    assert told(marks.since(NOW - 55, NOW - 40)) == [(MarkKind.READY, NOW - 50)]
    store.close()


def test_an_engine_that_outlives_its_host_is_not_marked_again(tmp_path: Path) -> None:
    _, events, store = book(tmp_path)
    events.publish(EngineStateEvent(engine=engine(EngineState.READY, ready_at=NOW - 50)))
    store.close()
    marks, events, store = book(tmp_path)
    events.publish(EngineStateEvent(engine=engine(EngineState.READY, ready_at=NOW - 50, adopted=True)))
    assert [mark.kind for mark in marks.since(None)] == [MarkKind.STARTED, MarkKind.READY]
    memory = Problem(reason=Reason.OUT_OF_MEMORY, message="CUDA out of memory")
    events.publish(
        EngineStateEvent(engine=engine(EngineState.FAILED, ready_at=NOW - 50, ended_at=NOW, problem=memory))
    )
    assert marks.since(None)[-1].kind is MarkKind.OUT_OF_MEMORY
    assert marks.since(None)[-1].text == "sndr-demo ran out of memory: CUDA out of memory"
    store.close()


def test_a_patch_that_fails_in_every_process_is_one_mark(tmp_path: Path) -> None:
    marks, events, store = book(tmp_path)
    failed = PatchResult(patch="p1", outcome=PatchOutcome.FAILED, reason=PatchReason.ANCHOR_MISSING)
    applied = PatchResult(patch="p2", outcome=PatchOutcome.APPLIED)
    for pid in (1, 2, 3):
        for result in (failed, applied):
            events.publish(
                PatchResultEvent(engine="engine-1", pid=pid, role=ProcessRole.WORKER, result=result)
            )
    assert [mark.text for mark in marks.since(None)] == ["Patch p1 failed: anchor_missing"]
    later = EventLog()
    again = MarkBook(store, later, clock=lambda: NOW + 60)

    def fails(result: PatchResult, pid: int) -> None:
        later.publish(PatchResultEvent(engine="engine-1", pid=pid, role=ProcessRole.WORKER, result=result))

    def found() -> list[tuple[str, int, float | None]]:
        return [(mark.text, mark.times, mark.last_at) for mark in again.since(None)]

    fails(failed, 1)
    once = ("Patch p1 failed: anchor_missing", 3, NOW)
    assert found() == [once], "a host that takes an engine over hears its ledger again"
    fails(failed, 1)
    assert found() == [(once[0], 4, NOW + 60)], "a process that says it again had another result between"
    fails(failed.model_copy(update={"patch": "p1: second"}), 1)
    fails(failed.model_copy(update={"reason": PatchReason.RAISED}), 1)
    assert sorted(text for text, _, _ in found()) == [
        "Patch p1 failed: anchor_missing",
        "Patch p1 failed: raised",
        "Patch p1: second failed: anchor_missing",
    ], "another failure of it, and a patch whose name begins like its text, are marks of their own"
    assert [len(mark.processes) for mark in again.since(None)] == [3, 1, 1]
    store.close()


def test_measurements_and_cut_overs_are_marked(tmp_path: Path) -> None:
    marks, events, store = book(tmp_path)

    def job(kind: JobKind, state: JobState, **values: Any) -> Job:
        return samples.job(kind, state).model_copy(update={"title": "Bench", "started_at": None} | values)

    events.publish(JobStepEvent(job=job(JobKind.BENCH_RUN, JobState.QUEUED)))
    assert not marks.since(None)
    for _ in range(3):
        events.publish(JobStepEvent(job=job(JobKind.BENCH_RUN, JobState.RUNNING, started_at=NOW - 9)))
    ended = {"started_at": NOW - 9, "ended_at": NOW - 4}
    events.publish(JobDoneEvent(job=job(JobKind.BENCH_RUN, JobState.CANCELLED, **ended)))
    for number, state in enumerate((JobState.FAILED, JobState.DONE)):
        moved = job(JobKind.ROUTE_CUTOVER, state, id=f"cut-{number}", ended_at=NOW, title="Lead a to b")
        events.publish(JobDoneEvent(job=moved))
    events.publish(JobDoneEvent(job=job(JobKind.ENGINE_BUILD, JobState.DONE, ended_at=NOW)))
    assert [(mark.kind, mark.text) for mark in marks.since(None)] == [
        (MarkKind.BENCH_BEGUN, "Bench: begun"),
        (MarkKind.BENCH_ENDED, "Bench: cancelled"),
        (MarkKind.CUT_OVER, "Lead a to b"),
    ]
    store.close()


def test_texts_from_outside_and_their_number_are_bounded(tmp_path: Path) -> None:
    marks, events, store = book(tmp_path)
    for number in range(MOST_MARKS + 10):
        length = 100_000 if number > MOST_MARKS else 10
        said = Problem(reason=Reason.ENGINE_CRASHED, message="<b>\x00" + "x" * length)
        one = engine(EngineState.FAILED, id=f"e-{number}", pid=None, problem=said, ended_at=NOW + number)
        events.publish(EngineStateEvent(engine=one))
    found = marks.since(None)
    assert len(found) == MOST_MARKS
    assert found[-1].at == NOW + MOST_MARKS + 9
    assert max(len(mark.text) for mark in found) == 300
    store.put("mark", "damaged", NOW + 1e6, '{"kind": "of another version"}')
    store.close()
    marks, _, store = book(tmp_path)
    assert len(marks.since(None)) == MOST_MARKS - 1
    store.close()


def test_marks_stay_in_memory_where_the_disk_takes_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    marks, events, store = book(tmp_path)
    other = sqlite3.connect(tmp_path / "store.sqlite")
    other.execute("DROP TABLE document")
    other.commit()
    other.close()
    for number in (1, 2):
        events.publish(EngineStateEvent(engine=engine(EngineState.STARTING, id=f"e-{number}")))
    assert len(marks.since(None)) == 2
    assert sum("not kept on the disk" in record.message for record in caplog.records) == 1
    store.close()
