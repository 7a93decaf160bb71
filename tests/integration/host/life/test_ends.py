"""Each way in which an engine ends, or a start is refused, is the same story wherever somebody looks."""

import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine_host.protocol.bench.autopsy import AutopsyEntry, Ending
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.errors import Reason
from engine_host.protocol.operations import table as ops
from tests.integration.host.conftest import DEMO, RunningHost, trained_for_more, wait_for
from tests.integration.host_process import sndr

Story = Callable[[RunningHost, Path], None]


@dataclass(frozen=True)
class Way:
    """One way to end: how it is brought about, and what has to be told of it."""

    bring_about: Story
    endings: frozenset[Ending]
    reasons: frozenset[Reason]
    did: str


def killed(number: int) -> Story:
    """An engine that serves, ended by a signal."""

    def bring_about(host: RunningHost, _folder: Path) -> None:
        engine = host.start()
        assert engine.pid is not None
        os.kill(engine.pid, number)

    return bring_about


def own_server(script: str) -> Story:
    """A start with a server that knows what ours knows, and ends by this script as soon as it has a model."""

    def bring_about(_host: RunningHost, folder: Path) -> None:
        server = folder / "llama-server"
        server.write_text(
            f'#!/bin/sh\ncase " $* " in *" --model "*) {script} ;; esac\n'
            f'exec {sys.executable} -m engine_host.engines.llamacpp.prebuilt_server "$@"\n'
        )
        server.chmod(0o755)
        assert sndr("settings", "set", "engine.own_server", str(server)).code == 0
        assert sndr("run", str(DEMO), "--server", "own", "--detach").code == 5

    return bring_about


def refused(*words: str, damage: Callable[[bytes], bytes] | None = None) -> Story:
    """A start that `sndr run` is refused: of what is named, or of a changed copy of the bundled model."""

    def bring_about(_host: RunningHost, folder: Path) -> None:
        named = words
        if damage is not None:
            model = folder / "damaged.gguf"
            model.write_bytes(damage(DEMO.read_bytes()))
            named = (str(model), *words)
        ended = sndr("run", *named, "--detach")
        assert ended.code in {4, 5, 6}, ended.err

    return bring_about


ENGINE_ENDED = frozenset({Ending.KILLED, Ending.MAIN_MEMORY})
REFUSED = frozenset({Ending.REFUSED})
BY_ITSELF = frozenset({Ending.EXITED, Ending.CRASHED, Ending.MAIN_MEMORY})
DAMAGED = frozenset({Reason.GGUF_TRUNCATED, Reason.MODEL_FILE_DAMAGED, Reason.NOT_GGUF})
WAYS = {
    "kill -9": Way(
        killed(signal.SIGKILL),
        ENGINE_ENDED,
        frozenset({Reason.ENGINE_KILLED, Reason.OUT_OF_MEMORY}),
        "died while it served",
    ),
    "abort": Way(
        killed(signal.SIGABRT), BY_ITSELF, frozenset({Reason.ENGINE_CRASHED}), "died while it served"
    ),
    "exit 1": Way(
        own_server("echo 'E something broke' >&2; exit 1"),
        BY_ITSELF,
        frozenset({Reason.ENGINE_CRASHED}),
        "failed to start",
    ),
    "out of memory by its log": Way(
        own_server("echo 'E ggml_aligned_malloc: insufficient memory (attempted)' >&2; exit 1"),
        frozenset({Ending.MAIN_MEMORY, Ending.GPU_MEMORY}),
        frozenset({Reason.OUT_OF_MEMORY}),
        "failed to start",
    ),
    "truncated": Way(
        refused(damage=lambda content: content[: len(content) // 3]),
        REFUSED | BY_ITSELF,
        DAMAGED,
        "",
    ),
    "no GGUF": Way(
        refused(damage=lambda _content: b"hello" * 1000), REFUSED, DAMAGED, "was refused its start"
    ),
    "no such file": Way(
        refused("/nowhere/at-all.gguf"),
        REFUSED,
        frozenset({Reason.MODEL_FILE_MISSING}),
        "was refused its start",
    ),
    "does not fit": Way(
        refused("--set", "context=8000000", "--streams", "256", damage=trained_for_more),
        REFUSED,
        frozenset({Reason.OUT_OF_MEMORY}),
        "was refused its start",
    ),
}


@pytest.mark.parametrize("name", WAYS)
def test_every_place_tells_the_same_story(name: str, host: RunningHost, tmp_path: Path) -> None:
    way = WAYS[name]
    way.bring_about(host, tmp_path)

    def failed() -> Engine | None:
        engines = host.client.call(ops.ENGINES).engines
        return next((one for one in engines if one.state is EngineState.FAILED), None)

    engine = wait_for(failed, "an engine that failed")
    problem = engine.problem
    assert problem is not None
    assert problem.reason in way.reasons

    def recorded() -> AutopsyEntry | None:
        return next(iter(host.client.call(ops.AUTOPSIES).autopsies), None)

    died = not engine.was_refused
    records = []
    if died:
        entry = wait_for(recorded, "its record")
        assert (entry.engine, entry.reason) == (engine.id, problem.reason)
        assert entry.ending in way.endings
        assert entry.sentence.startswith(problem.message.rstrip("."))
        records = [sndr("autopsy").out, sndr("autopsy", engine.id).out]
    else:
        assert Ending.REFUSED in way.endings

    # The pages of the window show this engine's problem; what a terminal shows is compared with it.
    status, doctor = sndr("status").out, sndr("doctor").out
    for told in (status, doctor, *records):
        assert problem.message.rstrip(".") in told
        assert engine.id in told
    for told in (status, doctor):
        assert (f"$ sndr autopsy {engine.id}" in told) is died
        assert way.did in told
        assert " ago" in told
    events = sndr("events", "--kind", "engine.state", "--after", "0").out
    assert f"{engine.name} ({engine.id}) failed  {problem.message}"[:120] in events
    told = json.loads(sndr("doctor", "--json").out)
    assert told["failed"]["problem"]["message"] == problem.message
    assert told["ends"][0]["engine"] == engine.id
    if engine.stages:
        logged = sndr("logs", engine.id).out
        assert engine.told_line is None or engine.told_line in logged

    host.end(signal.SIGTERM)
    without = sndr("doctor")
    assert without.code == 0, without.err
    assert (problem.message.rstrip(".") in without.out) is died
    assert (problem.message.rstrip(".") in sndr("status").err) is died
    if died:
        assert problem.message.rstrip(".") in sndr("autopsy", engine.id).out
    else:
        # What never had a process is no death, and leaves no record.
        assert engine.id not in sndr("autopsy").out


def test_a_name_that_nothing_has_is_an_error_and_no_engine(host: RunningHost) -> None:
    """Nothing ever started, so no place tells of an engine of that name."""
    for words in (("run", "nosuch", "--detach"), ("launch", "nosuch", "--detach")):
        ended = sndr(*words)
        assert ended.code == 4, ended.err
        assert "nosuch" in ended.err
    assert host.client.call(ops.ENGINES).engines == ()
    assert "nosuch" not in sndr("status", "--all").out
    assert "nosuch" not in sndr("autopsy").out
    for command in ("doctor", "logs", "restart", "stop"):
        ended = sndr(command, "nosuch", "--json")
        assert ended.code == 4, (command, ended.out, ended.err)
        assert ended.problem()["reason"] == Reason.NOT_FOUND, command
