"""`sndr status`: what is of now, and how many starts there were before; `sndr logs`: also from files."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from engine_host.core.paths import Folders
from tests.unit.cli.fake_host import VERSION, FakeHost
from tests.unit.cli.start.test_run import HOST
from tests.unit.cli.test_commands import ENGINE, Sndr, engines


def started(number: int, state: str) -> dict[str, Any]:
    """An engine of the past; a higher number is newer."""
    return {**ENGINE, "id": f"engine-{number}", "state": state, "created_at": float(number)}


def test_starts_that_ended_are_counted_and_shown_when_asked_for(host: FakeHost, sndr: Sndr) -> None:
    host.answers["GET /v1/host"] = (200, HOST)
    host.answers["GET /v1/engines"] = engines(
        started(1, "unloaded"), started(2, "failed"), started(3, "ready"), started(4, "unloaded")
    )
    _, out, _ = sndr("status")
    assert "engine-3" in out
    assert "engine-1" not in out
    assert "engine-2" not in out, "a newer start took its place"
    assert "3 earlier starts: sndr status --all" in out
    _, out, _ = sndr("status", "--all")
    assert all(f"engine-{number}" in out for number in range(1, 5))
    assert "earlier" not in out


def test_a_newest_start_that_failed_is_shown(host: FakeHost, sndr: Sndr) -> None:
    host.answers["GET /v1/host"] = (200, HOST)
    host.answers["GET /v1/engines"] = engines(
        started(1, "failed"), {**started(2, "failed"), "ended_at": time.time()}
    )
    _, out, _ = sndr("status")
    assert "engine-2" in out
    assert "1 earlier start: sndr status --all" in out
    host.answers["GET /v1/engines"] = engines(started(2, "failed"))
    _, out, _ = sndr("status")
    assert "engine-2" not in out, "nothing of it ran, and that was long ago"
    assert "1 earlier start: sndr status --all" in out
    host.answers["GET /v1/engines"] = engines(started(1, "unloaded"))
    _, out, _ = sndr("status")
    assert "No engine runs." in out


def test_streams_of_an_engine_without_slots_are_those_of_its_start(host: FakeHost, sndr: Sndr) -> None:
    """vLLM says how many requests it computes; how many it takes is in the plan."""
    vllm = started(1, "ready")
    vllm["readings"] = {"at": 1.0, "slots_busy": 1, "kv_tokens": 4_910, "kv_capacity": 621_226}
    vllm["plan"] = {**vllm["plan"], "streams": 256}
    host.answers["GET /v1/host"] = (200, HOST)
    host.answers["GET /v1/engines"] = engines(vllm)
    _, out, _ = sndr("status")
    assert "1 of 256" in out
    assert "4,910 of 621,226" in out


def test_no_gpu_is_said_in_words(host: FakeHost, sndr: Sndr) -> None:
    said = {
        "gpus": [],
        "gpu_absence": "no_driver",
        "gpu_absence_detail": "nvmlInit: NVML Shared Library Not Found",
    }
    host.answers["GET /v1/engines"] = engines()
    host.answers["GET /v1/host"] = (200, {**HOST, **said})
    assert "none (no NVIDIA driver)" in sndr("status")[1]
    broken = {"gpu_absence": "driver_error", "gpu_absence_detail": "nvmlInit: Unknown Error"}
    host.answers["GET /v1/host"] = (200, {**HOST, **said, **broken})
    assert "none (the GPU driver does not respond)" in sndr("status")[1]


def failed(**changes: Any) -> dict[str, Any]:
    problem = {"reason": "engine_crashed", "message": "vLLM was ended by SIGKILL."}
    plan = {**ENGINE["plan"], "command": "sndr run m"}
    return {**started(7, "failed"), "problem": problem, "plan": plan, "ready_at": 1.0, **changes}


def test_a_start_that_was_refused_names_its_cause_and_what_to_do(host: FakeHost, sndr: Sndr) -> None:
    host.answers["GET /v1/host"] = (200, HOST)
    fix = {"text": "Stop it.", "command": "sndr stop other"}
    problem = {"reason": "conflict", "message": "The port is taken.", "cause": "By another.", "fix": fix}
    host.answers["GET /v1/engines"] = engines(failed(problem=problem, ready_at=None, ended_at=time.time()))
    _, out, _ = sndr("status")
    assert "engine-7: The port is taken. (was refused its start, " in out
    assert re.search(r"^engine-7 .* refused +-", out, re.MULTILINE), "nothing of it ever ran"
    for words in ("why:         By another.", "what to do:  Stop it.", "$ sndr stop other", "$ sndr run m"):
        assert words in out
    for words in ("sndr logs", "start again"):
        assert words not in out, "there is no end and no log of what never ran"


def test_an_engine_that_failed_names_its_log_and_how_to_start_it_again(host: FakeHost, sndr: Sndr) -> None:
    host.answers["GET /v1/host"] = (200, HOST)
    host.answers["GET /v1/engines"] = engines(failed())
    _, out, _ = sndr("status")
    assert "engine-7: vLLM was ended by SIGKILL. (died while it served, " in out
    assert " ago)" in out
    assert "$ sndr autopsy engine-7" in out
    assert "$ sndr logs engine-7" in out
    assert "$ sndr run m" in out
    host.answers["GET /v1/endpoint/models"] = (200, {"seq": 1, "models": []})
    code, _, err = sndr("chat", "hello")
    assert code == 4
    for words in ("vLLM was ended by SIGKILL.", "sndr logs engine-7", "$ sndr run m"):
        assert words in err


def write_logs(home: Path) -> None:
    """Write the log files of a host and one engine."""
    logs = Folders.resolve().logs
    assert logs.is_relative_to(home)
    (logs / "engines").mkdir(parents=True)
    (logs / "host.log").write_text("INFO began\nERROR it broke\n", encoding="utf-8")
    (logs / "engines" / "engine-3.log.1").write_text("loading\n", encoding="utf-8")
    (logs / "engines" / "engine-3.log").write_text("CUDA error\n", encoding="utf-8")


def test_without_a_host_the_files_are_read(home: Path, sndr: Sndr) -> None:
    code, _, err = sndr("logs")
    assert (code, "No engine host runs" in err) == (3, True)
    write_logs(home)
    code, out, err = sndr("logs")
    assert (code, "No engine host runs; these are the last one's log files." in err) == (0, True)
    assert [line.split()[0] for line in out.splitlines()] == ["host", "host", "engine-3", "engine-3"]
    assert sndr("logs", "engine-3", "--lines", "1")[1] == "engine-3       CUDA error\n"
    assert "loading" not in sndr("logs", "engine-3", "--level", "error")[1]
    page = json.loads(sndr("logs", "engine-3", "--json")[1])
    assert [line["text"] for line in page["lines"]] == ["loading", "CUDA error"]
    code, _, err = sndr("logs", "engine-9")
    assert (code, "Sources: host, engine-3." in err) == (4, True)
    assert sndr("logs", "--follow")[0] == 3


def test_lines_that_a_slow_connection_left_out_are_counted(host: FakeHost, sndr: Sndr) -> None:
    def lines(seq: int, *numbers: int) -> dict[str, Any]:
        told = [
            {"source": "host", "number": one, "at": 1.0, "severity": "info", "text": f"line {one}"}
            for one in numbers
        ]
        return {"kind": "log.line", "seq": seq, "at": 1.0, "lines": told}

    host.answers["GET /v1/logs"] = (200, {"seq": 0, "lines": [], "sources": ["host"]})
    missed = {"kind": "missed", "seq": 2, "at": 1.0, "first": 2, "last": 9}
    host.answers["GET /v1/events"] = [lines(1, 5, 6), missed, lines(10, 40)]
    _, out, err = sndr("logs", "--follow")
    assert [line.split()[-1] for line in out.splitlines()] == ["5", "6", "40"]
    assert "Left out of host: 33, as lines came faster than they could be sent." in err
    assert err.count("Left out") == 1


@pytest.mark.parametrize(("level", "told"), [("info", True), ("warning", False)])
def test_lines_between_the_page_and_the_events_are_read_again(
    level: str, told: bool, host: FakeHost, sndr: Sndr
) -> None:
    """The events since the page are no longer kept; lines of a higher level do not tell what is between."""

    def lines(*numbers: int) -> list[dict[str, Any]]:
        line = {"source": "host", "at": 1.0, "severity": "warning"}
        return [{**line, "number": one, "text": f"line {one}"} for one in numbers]

    pages = iter(
        (
            {"seq": 0, "lines": lines(5), "sources": ["host"]},
            {"seq": 9, "lines": lines(8, 9), "sources": ["host"]},
        )
    )
    host.answers["GET /v1/logs"] = lambda: (200, next(pages))
    anew = {"kind": "reset", "seq": 0, "at": 1.0, "run_id": "r", "latest": 9}
    more = {"kind": "log.line", "seq": 10, "at": 1.0, "lines": lines(9, 10)}
    host.answers["GET /v1/events"] = [anew, more]
    _, out, err = sndr("logs", "--follow", "--level", level)
    assert [line.split()[-1] for line in out.splitlines()] == ["5", "8", "9", "10"]
    assert ("Left out of host: 2," in err) is told
    assert err.count("Left out") == told


def test_the_log_of_an_engine_of_an_earlier_host_is_read_from_its_file(
    host: FakeHost, home: Path, sndr: Sndr
) -> None:
    write_logs(home)
    host.answers["GET /v1/logs"] = (200, {"seq": 0, "lines": [], "sources": []})
    host.answers["GET /v1/engines"] = engines()
    code, out, _ = sndr("logs", "engine-3")
    assert (code, out) == (0, "engine-3       loading\nengine-3       CUDA error\n")
    assert "Sources: host, engine-3." in sndr("logs")[2]
    code, _, err = sndr("logs", "engine-9")
    assert (code, "engine-3" in err) == (4, True)


def test_an_unknown_kind_of_event_is_refused(sndr: Sndr) -> None:
    code, _, err = sndr("events", "--kind", "engine.stat")
    assert code == 2
    said = " ".join(err.split())
    assert "engine.stat" in said
    assert "Did you mean engine.state" in said
    assert "telemetry.sample" in said


def test_the_log_of_a_model_is_that_of_its_newest_engine(host: FakeHost, sndr: Sndr) -> None:
    host.answers["GET /v1/engines"] = engines(started(1, "failed"), started(2, "ready"))
    line = {"source": "engine-2", "number": 1, "at": 1.0, "severity": "info", "text": "loaded"}

    def received() -> tuple[int, Any]:
        of_engine = "source=engine-2" in host.received[-1][0]
        return 200, {"seq": 0, "lines": [line] if of_engine else [], "sources": ["engine-1", "engine-2"]}

    host.answers["GET /v1/logs"] = received
    code, out, err = sndr("logs", "demo")
    assert (code, "loaded" in out) == (0, True), err
    assert "demo (engine-2)" in out, "two have that name"
    host.answers["GET /v1/engines"] = engines(started(2, "ready"))
    assert sndr("logs", "demo")[1].split() == [*out.split()[:1], "demo", "loaded"], "one name for one thing"
    code, _, err = sndr("logs", "demon")
    assert code == 4
    assert "engine-2" in err


def test_a_host_of_a_version_without_models_on_demand_tells_the_rest(host: FakeHost, sndr: Sndr) -> None:
    refused = {"error": {"reason": "not_found", "message": "GET /v1/on-demand: Not Found."}}
    host.answers["GET /v1/host"] = (200, HOST)
    host.answers["GET /v1/engines"] = engines()
    host.answers["GET /v1/version"] = (200, {**VERSION, "program": "sndr 0.2.0"})
    host.lies = True  # This version's operation is never refused so.
    host.answers["GET /v1/on-demand"] = (404, refused)
    code, out, err = sndr("status", "--json")
    assert (code, json.loads(out)["on_demand"]) == (0, []), err


def test_what_ended_with_the_host_before_is_told_with_its_start(host: FakeHost, sndr: Sndr) -> None:
    host.answers["GET /v1/host"] = (200, HOST)
    host.answers["GET /v1/engines"] = engines()
    ended = {"name": "coder", "command": "sndr run coder --context 4096", "at": None}
    host.answers["GET /v1/endpoint/models"] = (200, {"seq": 1, "models": [], "ended": [ended]})
    code, _out, err = sndr("status")
    assert code == 0
    assert "coder ended with the engine host before this one" in err
    assert "`sndr run coder --context 4096`" in err
    assert json.loads(sndr("status", "--json")[1])["ended_with_host"] == [ended]
