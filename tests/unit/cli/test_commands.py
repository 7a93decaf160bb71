"""The commands against a host of canned answers."""

import ast
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from engine_host import cli
from engine_host.cli import main
from engine_host.cli.root import root
from engine_host.core.paths import Folders
from tests.unit.cli.fake_host import VERSION, FakeHost

Sndr = Callable[..., tuple[int, str, str]]

PLAN: dict[str, Any] = {
    "id": "p1",
    "fingerprint": "f",
    "created_at": 1.0,
    "model": "demo",
    "model_path": "/m/demo.gguf",
    "name": "demo",
    "engine": "llama.cpp",
    "server": "prebuilt",
    "server_version": "b1",
    "argv": ["llama-server", "-m", "/m/demo.gguf"],
    "environment": {},
    "settings": [{"name": "streams", "value": 8, "layer": "engine default", "why": "default"}],
    "streams": 8,
    "context": 2048,
    "speculation": "off",
    "keep": False,
    "findings": [],
    "command": "sndr run demo",
}
ENGINE: dict[str, Any] = {
    "id": "engine-1",
    "name": "demo",
    "engine": "llama.cpp",
    "server": "prebuilt",
    "server_version": "b1",
    "state": "ready",
    "plan": PLAN,
    "created_at": 1.0,
}


RESULT = {"folder": "/w", "from_cache": True, "seconds": {"compile": 61.0}}


def engines(*found: dict[str, Any]) -> tuple[int, Any]:
    return 200, {"seq": 0, "engines": list(found)}


def commands_below(group: click.Group, words: str = "sndr") -> Iterator[tuple[str, click.Command]]:
    """Return every command with what is typed for it, groups of groups included."""
    for name, one in group.commands.items():
        yield f"{words} {name}", one
        if isinstance(one, click.Group):
            yield from commands_below(one, f"{words} {name}")


def test_every_command_has_help_and_json() -> None:
    for words, one in commands_below(root):
        assert one.help, words
        if not isinstance(one, click.Group):
            assert "as_json" in {parameter.name for parameter in one.params}, words


def test_no_command_is_added_to_a_group_by_a_module_that_may_not_be_read() -> None:
    """A group of another module gets its commands by the table of `root`, or has them by chance."""
    for path in sorted(Path(cli.__file__).parent.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        taken = {
            alias.asname or alias.name
            for node in tree.body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        for node in ast.walk(tree):
            for mark in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
                called = mark.func if isinstance(mark, ast.Call) else mark
                if isinstance(called, ast.Attribute) and called.attr in {"command", "group"}:
                    assert ast.unparse(called.value) not in taken, (path.name, ast.unparse(mark))


def test_no_command_has_two_parameters_of_one_name() -> None:
    for words, one in commands_below(root):
        names = [parameter.name for parameter in one.params]
        options = [option for parameter in one.params for option in parameter.opts]
        assert len(names) == len(set(names)), words
        assert len(options) == len(set(options)), words


def test_version(sndr: Sndr) -> None:
    code, out, _ = sndr("version", "--json")
    assert code == 0
    assert json.loads(out)["protocol"] == "1.0"
    assert sndr("--version")[:2] == sndr("version")[:2]


def test_without_a_host_it_says_so(sndr: Sndr) -> None:
    code, out, err = sndr("status")
    assert code == 3
    assert out == ""
    assert "No engine host runs." in err
    assert "sndr serve" in err


@pytest.mark.parametrize("words", [("quit",), ("stop", "--all")])
def test_without_a_host_nothing_has_to_be_ended(sndr: Sndr, words: tuple[str, ...]) -> None:
    code, out, err = sndr(*words)
    assert code == 0
    assert "No engine host runs; there was nothing to" in out + err


def test_an_engine_that_was_kept_is_not_said_to_be_stopped(sndr: Sndr) -> None:
    folders = Folders.resolve()
    folders.make_run_folder()
    path = folders.run / "plan-1.sock"
    with socket.socket(socket.AF_UNIX) as kept:
        kept.bind(str(path))
        kept.listen()
        assert sndr("stop", "--all")[0] == 3
    assert sndr("stop", "--all")[0] == 0, "its process has ended, and left its socket"
    path.unlink()


def test_usage_error_is_code_2(sndr: Sndr) -> None:
    assert sndr("run")[0] == 2
    assert sndr("nonsense")[0] == 2


def test_other_major_version_is_refused(host: FakeHost, sndr: Sndr) -> None:
    host.answers["GET /v1/version"] = (200, {**VERSION, "major": 2})
    code, _, err = sndr("status")
    assert code == 3
    assert "speaks protocol 2" in err
    assert "Update this program" in err


def test_error_of_the_host_is_shown_whole(host: FakeHost, sndr: Sndr) -> None:
    problem = {"reason": "not_found", "message": "There is no job x.", "fix": {"text": "List them."}}
    host.answers["DELETE /v1/jobs/x"] = (404, {"error": problem})
    code, _, err = sndr("jobs", "cancel", "x")
    assert code == 4
    assert err == "Error: There is no job x.\n  What to do: List them.\n"
    for words in (("jobs", "--json", "cancel", "x"), ("jobs", "cancel", "x", "--json")):
        code, out, err = sndr(*words)
        assert (code, err) == (4, "")
        assert json.loads(out)["error"]["reason"] == "not_found"


def test_cancel_says_what_became_of_the_job(host: FakeHost, sndr: Sndr) -> None:
    running = {
        "id": "x",
        "kind": "bench.run",
        "title": "Measuring quick",
        "touches": "bench",
        "state": "running",
        "created_at": 1.0,
    }
    why = {"reason": "cancelled", "message": "The measurement was cancelled."}
    ended = running | {"state": "cancelled", "ended_at": 2.0, "error": why, "left": "r1 is kept."}
    host.answers["DELETE /v1/jobs/x"] = (202, running)
    host.answers["GET /v1/jobs/x"] = (200, ended)
    assert sndr("jobs", "cancel", "x")[:2] == (0, "Measuring quick: cancelled. r1 is kept.\n")
    assert json.loads(sndr("jobs", "cancel", "x", "--json")[1])["state"] == "cancelled"
    # It was too late, or came to another end.
    host.answers["GET /v1/jobs/x"] = (200, ended | {"state": "done", "error": None, "left": ""})
    assert sndr("jobs", "cancel", "x")[1] == "Measuring quick: done.\n"
    why = {"reason": "engine_crashed", "message": "It does not start again."}
    host.answers["GET /v1/jobs/x"] = (200, ended | {"state": "failed", "error": why})
    assert "failed. It does not start again. r1 is kept." in sndr("jobs", "cancel", "x")[1]


def test_answer_that_is_no_error_form_is_still_a_sentence(host: FakeHost, sndr: Sndr) -> None:
    host.answers["GET /v1/jobs"] = (502, b"<html>")
    code, _, err = sndr("jobs")
    assert code == 1
    assert "HTTP status 502" in err


def test_command_carries_the_token_and_a_key_to_do_it_once(host: FakeHost, sndr: Sndr) -> None:
    host.answers["GET /v1/engines"] = engines(ENGINE)
    host.answers["DELETE /v1/engines/engine-1"] = (202, {**ENGINE, "state": "unloaded"})
    code, out, _ = sndr("stop", "--now")
    assert code == 0
    assert out == "demo (engine-1) is stopped.\n"
    request, headers, _ = host.received[-1]
    assert request == "DELETE /v1/engines/engine-1?now=true"
    assert headers["authorization"] == "Bearer the-token"
    assert len(headers["idempotency-key"]) >= 16


def test_stop_wants_to_know_which_of_several(host: FakeHost, sndr: Sndr) -> None:
    host.answers["GET /v1/engines"] = engines(ENGINE, {**ENGINE, "id": "engine-2"})
    code, _, err = sndr("stop")
    assert code == 2
    assert "demo (engine-1), demo (engine-2)" in err


def test_stop_says_how_long_answers_may_take(host: FakeHost, sndr: Sndr) -> None:
    host.answers["GET /v1/engines"] = engines(ENGINE)
    host.answers["DELETE /v1/engines/engine-1"] = (202, {**ENGINE, "state": "unloaded"})
    assert sndr("stop", "demo", "--wait", "600")[0] == 0
    assert host.received[-1][0] == "DELETE /v1/engines/engine-1?wait=600.0"
    assert sndr("stop", "demo", "--wait", "600", "--now")[0] == 2


def test_stop_without_an_engine(host: FakeHost, sndr: Sndr) -> None:
    host.answers["GET /v1/engines"] = engines({**ENGINE, "state": "failed"})
    assert sndr("stop")[0] == 4


def test_dry_run_shows_the_plan_and_starts_nothing(host: FakeHost, sndr: Sndr) -> None:
    host.answers["POST /v1/plans"] = (201, PLAN)
    code, out, _ = sndr("run", "demo", "--dry-run", "--streams", "2", "--kv-type", "q8_0")
    assert code == 0
    assert "llama-server -m /m/demo.gguf" in out
    sent = host.received[-1][2]
    assert sent["overrides"]["streams"] == 2
    assert (sent["overrides"]["kv_type_k"], sent["overrides"]["kv_type_v"]) == ("q8_0", "q8_0")
    assert not any(request == "POST /v1/engines" for request, _, _ in host.received)


def test_dry_run_of_a_plan_that_cannot_start_has_its_code(host: FakeHost, sndr: Sndr) -> None:
    finding = {"id": "x", "severity": "error", "message": "Damaged.", "reason": "gguf_truncated"}
    host.answers["POST /v1/plans"] = (201, {**PLAN, "findings": [finding]})
    code, out, _ = sndr("run", "demo", "--dry-run")
    assert code == 5
    assert "error: Damaged." in out


def test_run_sends_an_absolute_path(
    host: FakeHost, sndr: Sndr, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    host.answers["POST /v1/plans"] = (201, PLAN)
    sndr("run", "some.gguf", "--dry-run")
    assert host.received[-1][2]["model"] == str(tmp_path / "some.gguf")


def test_stop_all_of_nothing_is_done(host: FakeHost, sndr: Sndr) -> None:
    host.answers["GET /v1/engines"] = engines({**ENGINE, "state": "unloaded"})
    code, out, err = sndr("stop", "--all")
    assert (code, out) == (0, "")
    assert "nothing to stop" in err


def test_failed_start_shows_the_engines_problem(host: FakeHost, sndr: Sndr) -> None:
    failed = {**ENGINE, "state": "failed", "problem": {"reason": "out_of_memory", "message": "Does not fit."}}
    host.answers["GET /v1/engines"] = engines()
    host.answers["POST /v1/plans"] = (201, PLAN)
    host.answers["POST /v1/engines"] = (202, {**ENGINE, "state": "preparing"})
    host.answers["GET /v1/events"] = [
        {
            "kind": "engine.stage",
            "seq": 1,
            "engine": "engine-1",
            "stage": {"name": "weights", "started_at": 1.0},
        },
        {
            "kind": "engine.stage",
            "seq": 1,
            "engine": "engine-1",
            "stage": {"name": "weights", "detail": "of 12 MiB", "started_at": 1.0, "ended_at": 3.0},
        },
        {"kind": "kind of a newer host", "seq": 2},
        {"kind": "engine.state", "seq": 3, "engine": failed},
    ]
    code, _, err = sndr("run", "demo")
    assert code == 5
    assert "  weights  2.0 s  of 12 MiB\n" in err, "its own time stands beside its name"
    assert "Error: Does not fit." in err


def test_job_progress_and_result(host: FakeHost, sndr: Sndr) -> None:
    job = {
        "id": "j1",
        "kind": "engine.build",
        "title": "Build",
        "touches": "x",
        "state": "running",
        "created_at": 1.0,
        "started_at": 1.0,
    }
    step = {"number": 1, "of": 2, "name": "compile", "progress": 0.5}
    host.answers["POST /v1/servers/build"] = (202, job)
    host.answers["GET /v1/jobs/j1"] = (200, job)
    host.answers["GET /v1/events"] = [
        {"kind": "job.step", "seq": 1, "job": {**job, "step": step}},
        {
            "kind": "job.done",
            "seq": 2,
            "job": {**job, "state": "done", "ended_at": 3.5, "result": RESULT},
        },
    ]
    code, out, err = sndr("engine", "build", "llama.cpp")
    assert code == 0
    assert out.splitlines() == [
        "llama.cpp is built (2.5 s).",
        "  folder: /w",
        "  from the cache: yes",
        "  compile: 1 min 01 s",
    ]
    assert "1/2 compile" in err


def test_a_job_does_not_go_back_to_steps_that_were_before_it_was_asked_for(
    host: FakeHost, sndr: Sndr
) -> None:
    job = {
        "id": "j1", "kind": "engine.build", "title": "Build", "touches": "x",
        "state": "running", "created_at": 1.0, "started_at": 1.0,
    }  # fmt: skip
    first, second = ({"number": number, "of": 2, "name": f"step {number}"} for number in (1, 2))
    host.answers["POST /v1/servers/build"] = (202, job)
    host.answers["GET /v1/jobs/j1"] = (200, {**job, "step": second})
    host.answers["GET /v1/events"] = [
        {"kind": "job.step", "seq": 1, "job": {**job, "step": first}},
        {"kind": "job.step", "seq": 2, "job": {**job, "step": second}},
        {"kind": "job.done", "seq": 3, "job": {**job, "state": "done", "ended_at": 3.5, "result": RESULT}},
    ]
    code, _, err = sndr("engine", "build", "llama.cpp")
    assert (code, "1/2" in err, "2/2 step 2" in err) == (0, False, True)


def test_events_are_lines(host: FakeHost, sndr: Sndr) -> None:
    host.answers["GET /v1/version"] = (200, {**VERSION, "seq": 2})
    host.answers["GET /v1/events"] = [
        {"kind": "heartbeat", "seq": 0, "latest": 2},
        {"kind": "notice", "seq": 1, "at": 5.0, "severity": "info", "text": "One.", "key": "k"},
        {"kind": "new", "seq": 2, "at": 6.0, "what": "two"},
    ]
    code, out, _ = sndr("events")
    assert code == 0
    assert [line.split()[1] for line in out.splitlines()] == ["1", "2"]
    assert "info: One." in out
    assert "what=two" in out


def test_frequent_events_are_left_out_unless_asked_for(host: FakeHost, sndr: Sndr) -> None:
    sample = {"kind": "telemetry.sample", "at": 5.0, "sample": {"values": {"ram": 1.0}}}
    notice = {"kind": "notice", "at": 5.0, "severity": "info", "text": "One.", "key": "k"}
    happened = [{**notice, "seq": 1}, *({**sample, "seq": number} for number in range(2, 41))]
    host.answers["GET /v1/version"] = (200, {**VERSION, "seq": 40})
    host.answers["GET /v1/events"] = happened
    assert [line.split()[1] for line in sndr("events")[1].splitlines()] == ["1"]
    assert len(sndr("events", "--all")[1].splitlines()) == 20
    assert len(sndr("events", "--all", "--after", "0")[1].splitlines()) == 40
    by_kind = sndr("events", "--kind", "telemetry.sample", "--json")[1].splitlines()
    assert [json.loads(line)["seq"] for line in by_kind] == list(range(21, 41))


@pytest.mark.parametrize("follow", [(), ("-f",)])
def test_logs_of_an_unknown_source_list_the_known_ones(
    host: FakeHost, sndr: Sndr, follow: tuple[str, ...]
) -> None:
    host.answers["GET /v1/engines"] = engines(ENGINE)
    host.answers["GET /v1/logs"] = (200, {"seq": 0, "lines": [], "sources": ["host"]})
    code, _, err = sndr("logs", "bogus", *follow)
    assert code == 4
    assert "Sources: build, engine-1, host." in err
    assert sndr("logs", "build")[0] == 0


def test_logs_of_one_source(host: FakeHost, sndr: Sndr) -> None:
    line = {"source": "host", "number": 1, "at": 1.0, "severity": "warning", "text": "Hm."}
    host.answers["GET /v1/logs"] = (200, {"seq": 0, "lines": [line], "sources": ["host"]})
    code, out, _ = sndr("logs", "host", "--level", "warning", "--lines", "5")
    assert code == 0
    assert "warning: Hm." in out
    assert host.received[-1][0] == "GET /v1/logs?source=host&severity=warning&limit=5"


@pytest.mark.parametrize("arguments", [("run", "--json"), ("--json", "status"), ("nonsense", "--json")])
def test_usage_errors_are_json_too(sndr: Sndr, arguments: tuple[str, ...]) -> None:
    code, out, err = sndr(*arguments)
    assert (code, err) == (2, "")
    error = json.loads(out)["error"]
    assert set(error) == {"reason", "message", "cause", "fix", "evidence"}
    assert error["reason"] == "bad_request"
    assert error["fix"]["command"].endswith("--help")


def test_quit_names_kept_engines_that_go_on(host: FakeHost, sndr: Sndr) -> None:
    def end() -> tuple[int, Any]:
        host.folders.socket.unlink()
        return 200, {}

    host.answers["GET /v1/engines"] = engines({**ENGINE, "keep": True, "pid": 42})
    host.answers["POST /v1/host/quit"] = end
    code, out, _ = sndr("quit")
    assert code == 0
    assert "still running: demo (pid 42)" in out
    assert "window" not in out


def test_quit_says_that_an_open_window_starts_a_new_host(host: FakeHost, sndr: Sndr) -> None:
    def end() -> tuple[int, Any]:
        host.folders.socket.unlink()
        return 200, {}

    lock = host.folders.run / "window-0.lock"
    lock.touch()
    host.answers["GET /v1/engines"] = engines()
    host.answers["POST /v1/host/quit"] = end
    code, out, _ = sndr("quit")
    lock.unlink()
    assert code == 0
    assert "The open window starts another one when you click" in out


def test_interrupt_is_130(host: FakeHost, sndr: Sndr) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    assert main([]) in {0, 2}
    root.commands["version"].callback, before = lambda **_: interrupt(), root.commands["version"].callback
    try:
        assert sndr("version")[0] == 130
    finally:
        root.commands["version"].callback = before
