"""When an engine is idle after a cancel, by its own counters; the engine is a FAKE one."""

import asyncio
import time
from collections.abc import Iterator

import httpx
import pytest

from engine_host.bench.lab import idle
from engine_host.protocol.bench.lab import LabCut
from tests.unit.asynchronous import run

LLAMA = "# TYPE x gauge\nllamacpp:requests_processing {}\nllamacpp:requests_deferred {}\n"
VLLM = (
    'vllm:num_requests_running{{engine="0"}} {}.0\nvllm:num_requests_waiting{{engine="0"}} {}.0\n'
    'vllm:num_requests_waiting_by_reason{{engine="0"}} 7.0\n'
)


def watched(engine: str, texts: Iterator[str], status: int = 200) -> tuple[int | None, float] | None:
    """Watch an engine that answers with each text in turn."""

    async def work() -> tuple[int | None, float] | None:
        transport = httpx.MockTransport(lambda _asked: httpx.Response(status, text=next(texts)))
        async with httpx.AsyncClient(transport=transport, base_url="http://engine") as client:
            return await idle.idle_after(client, engine, time.perf_counter())

    return run(work())


@pytest.mark.parametrize(("engine", "told"), [("llama.cpp", LLAMA), ("vllm", VLLM)])
def test_it_is_watched_until_nothing_runs_and_nothing_waits(engine: str, told: str) -> None:
    texts = iter([told.format(2, 3), told.format(0, 1), told.format(0, 0)])
    found = watched(engine, texts)
    assert found is not None
    assert found[0] == 0
    assert next(texts, "") == ""


def test_one_that_others_keep_at_work_is_left_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle, "LONGEST", 0.05)
    found = watched("vllm", iter(lambda: VLLM.format(2, 1), ""))
    assert found is not None
    assert found[0] == 3


@pytest.mark.parametrize(
    ("engine", "text", "status"),
    [
        ("", LLAMA.format(0, 0), 200),
        ("vllm", "", 200),
        ("llama.cpp", "", 501),
        ("vllm", "vllm:num_requests_running x", 200),
    ],
)
def test_what_an_engine_does_not_say_is_not_known(engine: str, text: str, status: int) -> None:
    assert watched(engine, iter(lambda: text, "-"), status) is None


def test_one_that_does_not_answer_in_that_time_is_said_to_have_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle, "LONGEST", 0.05)

    async def silent(_asked: httpx.Request) -> httpx.Response:
        await asyncio.Event().wait()
        raise AssertionError

    async def work() -> tuple[int | None, float] | None:
        transport = httpx.MockTransport(silent)
        async with httpx.AsyncClient(transport=transport, base_url="http://engine") as client:
            return await idle.idle_after(client, "vllm", time.perf_counter())

    found = run(work())
    assert found is not None
    assert found[0] is None
    cut = LabCut(whole=("a",), idle=False, after_cancel_seconds=found[1], running=found[0])
    assert "did not say within" in cut.sentence
    assert "at work" not in LabCut(whole=("a",)).sentence


def test_who_cancelled_is_told_what_is_kept_and_an_engine_that_goes_on_alone() -> None:
    nothing = LabCut(cut=("a",), missing=("b",), idle=True, after_cancel_seconds=0.07)
    assert nothing.brief is None
    assert "idle 0.07 s" in nothing.sentence, "the report tells it"
    some = nothing.model_copy(update={"whole": ("a",), "cut": (), "idle": False, "running": 2})
    assert some.brief == some.sentence
    assert some.model_copy(update={"idle": True}).brief == "Whole: a; not asked: b."
    busy = nothing.model_copy(update={"idle": False, "running": 2})
    assert busy.brief == "Requests at work 0.07 s after the cancel, by the engine's own counters: 2."
