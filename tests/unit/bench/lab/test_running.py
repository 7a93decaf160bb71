"""The load generator against servers that answer well, badly, and with intent."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from engine_host.bench.kept import runs as kept_runs
from engine_host.bench.lab import load, running
from engine_host.bench.lab.comparing import compared
from engine_host.bench.lab.running import LabRunning, carry_out
from engine_host.bench.lab.workloads import WORKLOADS, Part, Workload, prompt, repeated, salt
from engine_host.client.bench_reports.figures import state_text
from engine_host.core.errors import HostError
from engine_host.protocol.bench.lab import (
    LabAsk,
    LabEngine,
    LabMachine,
    LabRun,
    LabStep,
    Quantity,
    WorkloadName,
)
from tests.unit.asynchronous import run

TEXT = (
    "A query is compared with every key and the scores become weights by which values are mixed while "
    "several heads look at other things"
)
WORDS = TEXT.split()
SMALL = Workload(
    WorkloadName.QUICK,
    (Part("pair", "Write.", max_tokens=len(WORDS), warm=1, measured=2, streams=2),),
)
Answer = Callable[[dict[str, object], asyncio.StreamWriter], Awaitable[None]]


def event(value: object) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


def delta(text: str) -> bytes:
    return event({"choices": [{"index": 0, "delta": {"content": text}}]})


USAGE = event({"choices": [], "usage": {"prompt_tokens": 30, "completion_tokens": len(WORDS)}})
END = b"data: [DONE]\n\n"


async def well(_asked: dict[str, object], writer: asyncio.StreamWriter) -> None:
    for word in WORDS:
        writer.write(delta(word + " "))
        await writer.drain()
    writer.write(USAGE + END)


def raw(content: bytes) -> Answer:
    async def answer(_asked: dict[str, object], writer: asyncio.StreamWriter) -> None:
        writer.write(content)

    return answer


async def measured(
    answer: Answer,
    folder: Path,
    *,
    workload: Workload = SMALL,
    cut: asyncio.Event | None = None,
    before: LabRun | None = None,
    engine: str = "",
    slots: int | None = None,
    tell: Callable[[LabStep], None] = lambda _step: None,
) -> tuple[LabRun, list[dict[str, object]], int]:
    """Run a workload against a server; the run, what was asked, and the connections left open."""
    asked: list[dict[str, object]] = []
    open_now = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal open_now
        open_now += 1
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            body = json.loads(await reader.readexactly(length))
            asked.append(body)
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
            await answer(body, writer)
            await writer.drain()
            writer.close()
            # Nothing more comes: this ends when the other side is gone.
            await reader.read()
        finally:
            open_now -= 1
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    ask = LabAsk(
        workload=workload.name,
        folder=str(folder),
        seed=7,
        engine=LabEngine(
            address=f"http://127.0.0.1:{port}/v1/",
            model="m",
            engine=engine,
            settings={} if slots is None else {"streams": str(slots)},
        ),
        machine=LabMachine(program="1", python="3", system="s"),
    )
    async with server, load.client_of(ask.engine.address) as client:
        side = LabRunning(ask, ask.engine, workload, client, 7, before)
        work = asyncio.create_task(carry_out([side], tell))
        if cut is not None:
            await cut.wait()
            work.cancel()
        (found,) = await work
        async with asyncio.timeout(60):
            while open_now:  # noqa: ASYNC110 - the server's side has no event to offer
                await asyncio.sleep(0.005)
    return found, asked, open_now


@pytest.mark.parametrize(("engine", "tells"), [("llama.cpp", True), ("vllm", None), ("", None)])
def test_llama_cpp_tells_how_far_it_has_read_so_that_it_sees_who_has_gone(
    tmp_path: Path, engine: str, tells: bool | None
) -> None:
    found, asked, _ = run(measured(well, tmp_path, engine=engine))
    assert found.complete
    assert {body.get("return_progress") for body in asked} == {tells}


@pytest.mark.parametrize(("engine", "most"), [("llama.cpp", 3), ("vllm", 8), ("", 8)])
def test_of_llama_cpp_no_more_than_one_request_waits_in_the_server(
    tmp_path: Path, engine: str, most: int
) -> None:
    """It notices one that has gone only as it reads its prompt; the time with us counts all the same."""
    here = asyncio.Event()
    at_once: list[int] = []
    now = 0

    async def slowly(asked: dict[str, object], writer: asyncio.StreamWriter) -> None:
        nonlocal now
        now += 1
        at_once.append(now)
        if now == most:
            here.set()
        await here.wait()
        # More would come now.
        for _ in range(50):
            await asyncio.sleep(0)
        await well(asked, writer)
        now -= 1

    eight = Workload(
        WorkloadName.QUICK, (Part("eight", "Write.", max_tokens=len(WORDS), warm=0, measured=1, streams=8),)
    )
    found, _, _ = run(measured(slowly, tmp_path, workload=eight, engine=engine, slots=2))
    assert max(at_once) == most
    assert found.complete
    answered = min(one.started + one.total for one in found.samples)
    assert all(one.started < answered for one in found.samples)


@pytest.mark.parametrize(
    ("progress", "told"),
    [
        ({"total": 90_000, "processed": 22_500, "cache": 0, "time_ms": 9}, ["25 %"]),
        ({"total": 0, "processed": 0}, []),
        ({"total": 1, "processed": 9}, []),
        ({"total": "x"}, []),
        ([7], []),
    ],
)
def test_of_a_long_prompt_it_tells_how_far_it_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, progress: object, told: list[str]
) -> None:
    monkeypatch.setattr(running, "_TOLD_EACH", 0.0)
    steps: list[LabStep] = []

    async def slow(asked: dict[str, object], writer: asyncio.StreamWriter) -> None:
        writer.write(event({"choices": [], "prompt_progress": progress}))
        await well(asked, writer)

    alone = Workload(WorkloadName.QUICK, (replace(SMALL.parts[0], streams=1, warm=0, measured=1),))
    found, _, _ = run(measured(slow, tmp_path, workload=alone, tell=steps.append))
    assert found.complete
    reading = [step for step in steps if "of the prompt read" in step.words]
    assert [step.words for step in reading] == [f"1 of 1: {share} of the prompt read" for share in told]
    assert [step.progress for step in reading] == [0.25] * len(told)
    assert steps[-1].progress == 1.0


def test_every_request_is_salted_alike_for_a_seed_and_counted(tmp_path: Path) -> None:
    found, asked, _ = run(measured(well, tmp_path))
    assert found.complete
    (part,) = found.parts
    assert (part.done, part.measured, part.struck) == (4, 4, False)
    texts = [body["messages"][0]["content"] for body in asked]  # type: ignore[index]
    assert len(set(texts)) == 6
    assert sorted(texts) == sorted(prompt(SMALL.parts[0], salt(7, "pair", number)) for number in range(6))
    assert all(body["min_p"] == 0 and body["stream"] for body in asked)
    one = found.samples[0]
    assert (one.tokens, one.prompt_tokens, one.text.split()) == (len(WORDS), 30, WORDS)
    assert kept_runs.find(kept_runs.folder_of(tmp_path), found.id) == found


def test_two_are_asked_in_turns_with_the_same_prompts(tmp_path: Path) -> None:
    asked: list[tuple[str, str]] = []
    steps: list[LabStep] = []
    machine = LabMachine(program="1", python="3", system="s")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        body = json.loads(await reader.readexactly(length))
        asked.append((body["model"], body["messages"][0]["content"]))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        await well(body, writer)
        await writer.drain()
        writer.close()

    async def both() -> list[LabRun]:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        engines = [LabEngine(address=address, model=name) for name in ("a", "b")]
        workload = repeated(Workload(WorkloadName.QUICK, (replace(SMALL.parts[0], streams=1),)), 3)
        ask = LabAsk(
            workload=workload.name,
            folder=str(tmp_path),
            engine=engines[0],
            against=engines[1],
            machine=machine,
        )
        async with server, load.client_of(address) as client:
            sides = [LabRunning(ask, engine, workload, client, 7) for engine in engines]
            return await carry_out(sides, steps.append)

    one, other = run(both())
    assert [name for name, _ in asked] == ["a", "b", "b", "a", "a", "b", "b", "a"]
    assert {prompt for name, prompt in asked if name == "a"} == {text for name, text in asked if name == "b"}
    assert (one.turns_with, other.turns_with) == (other.id, one.id)
    assert [(one.complete, len(one.samples)), (other.complete, len(other.samples))] == [(True, 4)] * 2
    assert [step.progress for step in steps] == [number / 8 for number in range(1, 9)]
    assert steps[2].words.startswith("b, 1 of 3: ")
    assert compared(one, other).in_turns
    assert set(kept_runs.kept([one, other]).ids) == {one.id, other.id}
    kept_runs.remove(kept_runs.folder_of(tmp_path), one.id)
    assert [left.id for left in kept_runs.page(kept_runs.folder_of(tmp_path)).runs] == [other.id]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"data: not json\n\n", "expected"),
        (b'data: ["a"]\n\n' + END, "it is no object"),
        (b"data: " + b"[" * 5000 + b"\n\n", "recursion"),
        (event({"error": {"message": "out of memory"}}), "out of memory"),
        (delta("half"), "cut off"),
        (b"", "cut off"),
    ],
)
def test_a_server_that_answers_badly_is_refused_with_what_it_said(
    tmp_path: Path, content: bytes, error: str
) -> None:
    with pytest.raises(HostError) as raised:
        run(measured(raw(content), tmp_path))
    assert error in raised.value.problem.cause
    assert kept_runs.page(kept_runs.folder_of(tmp_path)).runs == ()


def test_counts_that_are_none_are_no_usage(tmp_path: Path) -> None:
    odd = {"prompt_tokens": -1, "completion_tokens": True, "prompt_tokens_details": [1]}
    content = b"".join(delta(f"{word} ") for word in WORDS)
    content += event({"choices": 7, "usage": odd, "timings": {"cache_n": "x"}}) + END
    found, _, _ = run(measured(raw(content), tmp_path))
    assert {(one.tokens, one.prompt_tokens, one.cached_tokens) for one in found.samples} == {
        (None, None, None)
    }
    told = {figure.quantity for figure in found.parts[0].figures if figure.value is not None}
    assert told == {Quantity.TTFT, Quantity.TOTAL}


def test_a_model_that_goes_in_circles_has_its_figures_struck(tmp_path: Path) -> None:
    found, _, _ = run(measured(raw(delta("no ") * 40 + USAGE + END), tmp_path))
    assert found.struck
    assert found.complete


def test_a_server_that_stops_to_answer_ends_the_run(tmp_path: Path) -> None:
    count = 0

    async def answer(body: dict[str, object], writer: asyncio.StreamWriter) -> None:
        nonlocal count
        count += 1
        if count == 1:
            await well(body, writer)

    single = Workload(WorkloadName.QUICK, (Part("one", "Write.", max_tokens=20, warm=1, measured=9),))
    found, asked, _ = run(measured(answer, tmp_path, workload=single))
    assert (found.complete, len(asked)) == (False, 4)
    assert "3 rounds without an answer" in found.ended_by


def test_a_run_that_was_cut_short_is_gone_on_with_by_what_is_missing(tmp_path: Path) -> None:
    count = 0

    async def breaks(body: dict[str, object], writer: asyncio.StreamWriter) -> None:
        nonlocal count
        count += 1
        # The second of a round's two is lost with the connection, and then both.
        if count < 8 and count != 6:
            await well(body, writer)

    longer = replace(SMALL, parts=(replace(SMALL.parts[0], measured=6),))
    cut, _, _ = run(measured(breaks, tmp_path, workload=longer))
    assert (cut.complete, cut.resumed_at) == (False, ())
    assert "rounds without an answer" in cut.ended_by
    whole, second, _ = run(measured(well, tmp_path, workload=longer, before=cut))
    assert (whole.complete, whole.ended_by, whole.id, len(whole.resumed_at)) == (True, "", cut.id, 1)
    assert whole.parts[0].done == 12
    assert sorted((one.round, one.number) for one in whole.samples) == [(n // 2, n) for n in range(14)]
    assert not [one for one in whole.samples if one.error]
    assert len(second) == 14 - 2, "a measured round that was whole before is not asked again; the warm one is"
    warm = [one.started for one in whole.samples if one.warm]
    assert sum(one.started < min(warm) for one in whole.samples) == 2
    started = [one.started for one in whole.samples]
    assert started == sorted(started)
    assert kept_runs.find(kept_runs.folder_of(tmp_path), cut.id) == whole


def test_what_was_read_before_the_cut_is_asked_by_another_prompt(tmp_path: Path) -> None:
    count = 0

    async def breaks(body: dict[str, object], writer: asyncio.StreamWriter) -> None:
        nonlocal count
        count += 1
        if count < 6 and count != 4:
            await well(body, writer)

    longer = replace(SMALL, parts=(replace(SMALL.parts[0], measured=6),))
    cut, first, _ = run(measured(breaks, tmp_path, workload=longer))
    assert {one.salt for one in cut.samples} == {salt(7, "pair", number) for number in range(len(first))}
    prompts = [{json.dumps(one["messages"]) for one in first}]
    kept_then: list[int] = []

    async def watched(body: dict[str, object], writer: asyncio.StreamWriter) -> None:
        # What a kill would leave behind, so that the next one asks by others again.
        kept_then.append(len(kept_runs.find(kept_runs.folder_of(tmp_path), cut.id).resumed_at))
        await well(body, writer)

    for times in (1, 2):
        # As if it had been cut again: the next time asks by others than both before.
        before = cut.model_copy(update={"resumed_at": (1.0,) * (times - 1)})
        _, asked, _ = run(measured(watched, tmp_path, workload=longer, before=before))
        prompts.append({json.dumps(one["messages"]) for one in asked})
        assert set(kept_then) == {times}
        kept_then.clear()
    assert len(set.union(*prompts)) == sum(map(len, prompts))


def test_a_conversation_that_was_cut_is_asked_from_its_first_turn(tmp_path: Path) -> None:
    count = 0

    async def breaks(body: dict[str, object], writer: asyncio.StreamWriter) -> None:
        nonlocal count
        count += 1
        # One whole conversation of two turns, and the first turn of the next.
        if count < 4:
            await well(body, writer)

    turns = tuple(Part(name, name, max_tokens=len(WORDS), warm=0, measured=4) for name in ("one", "two"))
    workload = Workload(WorkloadName.QUICK, turns, by_round=True)
    cut, _, _ = run(measured(breaks, tmp_path, workload=workload))
    whole, asked, _ = run(measured(well, tmp_path, workload=workload, before=cut))
    assert whole.complete
    assert len(asked) == 8 - 2
    assert sorted((one.round, one.part) for one in whole.samples) == [
        (n, name) for n in range(4) for name in ("one", "two")
    ]


def test_a_part_that_was_measured_is_not_warmed_again(tmp_path: Path) -> None:
    count = 0

    async def breaks(body: dict[str, object], writer: asyncio.StreamWriter) -> None:
        nonlocal count
        count += 1
        if count < 6:
            await well(body, writer)

    parts = tuple(Part(name, name, max_tokens=len(WORDS), warm=1, measured=3) for name in ("one", "two"))
    workload = Workload(WorkloadName.QUICK, parts)
    cut, _, _ = run(measured(breaks, tmp_path, workload=workload))
    whole, asked, _ = run(measured(well, tmp_path, workload=workload, before=cut))
    assert (whole.complete, len(asked), len(whole.samples)) == (True, 4, 8)
    assert all(str(one["messages"]).endswith("two'}]") for one in asked)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"complete": True}, "complete"),
        ({"workload_hash": "another"}, "something else"),
        ({"turns_with": "x"}, "in one go"),
        ({"engine": LabEngine(address="http://other/v1/", model="m")}, "http://other"),
    ],
)
def test_only_the_same_that_was_cut_short_is_gone_on_with(
    tmp_path: Path, changes: dict[str, object], why: str
) -> None:
    found, _, _ = run(measured(well, tmp_path))
    folder = kept_runs.folder_of(tmp_path)
    kept = found.model_copy(update={"complete": False, **changes})
    kept_runs.save(folder, kept)
    with pytest.raises(HostError, match="cannot be gone on with") as refused:
        kept_runs.find_cut(folder, kept.id, found.engine, found.workload_hash)
    assert why in refused.value.problem.cause


@pytest.mark.parametrize(
    "address",
    ["", "here", "ftp://x", "http://", "http://me:secret@x", "http://x?key=secret", "http://x:99999", "http://[",
     "http://x\ny\0"],
)  # fmt: skip
def test_what_is_no_address_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(HostError) as raised:
        load.client_of(address)
    assert "secret" not in str(raised.value.problem)


def test_there_is_a_workload_of_every_name_and_no_prompt_twice() -> None:
    assert set(WORKLOADS) == set(WorkloadName)
    for workload in WORKLOADS.values():
        salts = [
            salt(1, part.name, number)
            for part in workload.parts
            for number in range(part.rounds * part.streams)
        ]
        assert len(set(salts)) == len(salts)
        assert salt(2, workload.parts[0].name, 0) not in salts


def test_a_run_is_kept_as_one_that_runs_until_its_end(tmp_path: Path) -> None:
    two = replace(SMALL, parts=(SMALL.parts[0], replace(SMALL.parts[0], name="more")))
    seen = list[str]()

    def tell(step: LabStep) -> None:
        if step.part == "more":
            seen.append(state_text(kept_runs.find(kept_runs.folder_of(tmp_path), "latest")))

    found, _, _ = run(measured(well, tmp_path, workload=two, tell=tell))
    assert seen
    assert set(seen) == {"running"}
    assert (
        state_text(found) == state_text(kept_runs.find(kept_runs.folder_of(tmp_path), "latest")) == "complete"
    )
