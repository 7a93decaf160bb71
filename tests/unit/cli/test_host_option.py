"""`sndr --host NAME`: every command on another machine's host, and what is only of this one."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine_host.cli import main
from engine_host.core.paths import Folders
from tests.unit.cli.fake_host import VERSION, FakeHost, fake_host
from tests.unit.cli.start.test_run import HOST
from tests.unit.cli.test_commands import Sndr, engines
from tests.unit.cli.test_status import failed


def told(gpu: FakeHost, **more: Any) -> dict[str, Any]:
    """The other machine as this one's host tells of it."""
    files = {"control_socket": str(gpu.folders.socket), "control_token": str(gpu.folders.token)}
    known = {"name": "gpu", "destination": "gpu", "mode": "engine_host", "state": "connected"}
    return {**known, "sentence": "Connected.", **files, **more}


@pytest.fixture
def gpu(home: Path, host: FakeHost) -> Iterator[FakeHost]:
    """A FAKE host of another machine, whose socket and token this machine's FAKE host tells of."""
    with fake_host(home / "elsewhere") as running:
        host.answers["GET /v1/hosts/gpu"] = (200, told(running))
        running.answers["GET /v1/host"] = (200, HOST)
        running.answers["GET /v1/engines"] = engines()
        yield running


def test_a_command_is_about_the_other_machine(gpu: FakeHost, sndr: Sndr) -> None:
    code, out, _ = sndr("--host", "gpu", "status")
    assert code == 0
    assert f"pid {HOST['pid']}" in out


def test_without_it_the_same_command_is_about_this_one(host: FakeHost, gpu: FakeHost, sndr: Sndr) -> None:
    host.answers["GET /v1/host"] = (200, {**HOST, "pid": 77})
    host.answers["GET /v1/engines"] = engines()
    assert "pid 77" in sndr("status")[1]
    assert not gpu.received
    assert "pid 77" not in sndr("--host", "gpu", "status")[1]
    assert "pid 77" in sndr("status")[1], "the choice is of one call"


def test_a_host_that_is_named_too_late_is_told_where_it_belongs(gpu: FakeHost, sndr: Sndr) -> None:
    code, _, error = sndr("status", "--host", "gpu")
    assert (code, "--host goes before the command: sndr --host gpu status" in error) == (2, True)
    _, out, _ = sndr("run", "m", "--host=gpu; id", "--json")
    assert "sndr --host 'gpu; id' run m --json" in json.loads(out)["error"]["message"]
    assert "sndr --host NAME status" in sndr("status", "--host")[2]
    assert "goes without --host" in sndr("host", "list", "--host", "gpu")[2]


def test_each_command_that_is_shown_names_the_host(gpu: FakeHost, sndr: Sndr) -> None:
    gpu.answers["GET /v1/engines"] = engines(failed())
    _, out, _ = sndr("--host", "gpu", "status")
    assert "$ sndr --host gpu logs engine-7" in out
    assert "$ sndr --host gpu run m" in out
    gpu.answers["GET /v1/endpoint/models"] = (200, {"seq": 1, "models": []})
    _, _, error = sndr("--host", "gpu", "chat", "hello")
    assert "sndr --host gpu run m" in error
    _, out, _ = sndr("--host", "gpu", "chat", "hello", "--json")
    assert json.loads(out)["error"]["fix"]["command"] == "sndr --host gpu run m"


@pytest.mark.parametrize("words", [("serve",), ("connect",), ("connect", "zed", "--write"), ("version",)])
def test_what_is_of_this_machine_alone_says_so(sndr: Sndr, words: tuple[str, ...]) -> None:
    code, _, error = sndr("--host", "gpu", *words)
    assert code == 2
    assert f"`sndr {words[0]}` goes without --host" in error
    code, out, _ = sndr("--host", "gpu", *words, "--json")
    assert code == 2
    assert json.loads(out)["error"]["reason"] == "bad_request"


@pytest.mark.parametrize("words", [("status",), ("settings", "get"), ("keys", "list"), ("logs",), ("quit",)])
def test_nothing_of_this_machine_is_taken_for_the_other_one_s(
    home: Path, sndr: Sndr, words: tuple[str, ...]
) -> None:
    logs = Folders.resolve().logs
    logs.mkdir(parents=True)
    (logs / "host.log").write_text("a line of this machine\n", encoding="utf-8")
    code, out, error = sndr("--host", "gpu", *words)
    assert code == 3
    assert not out
    assert "gpu is not connected: no engine host runs here" in error
    assert "sndr host connect gpu" in error


def test_one_that_was_not_added_is_said_to_be_unknown(host: FakeHost, sndr: Sndr) -> None:
    code, _, _ = sndr("--host", "nas", "status")
    assert code == 4


def test_it_is_connected_first(host: FakeHost, gpu: FakeHost, sndr: Sndr) -> None:
    states = [told(gpu, state="disconnected", control_socket=None), told(gpu, state="connecting"), told(gpu)]
    host.answers["GET /v1/hosts/gpu"] = lambda: (200, states.pop(0) if len(states) > 1 else states[0])
    host.answers["POST /v1/hosts/gpu/connect"] = lambda: (200, states[0])
    host.answers["GET /v1/hosts/questions"] = (200, {"seq": 0, "questions": []})
    assert sndr("--host", "gpu", "status")[0] == 0
    assert [one for one in host.received if one[0] == "POST /v1/hosts/gpu/connect"]


def test_without_an_engine_host_there_the_command_says_what_to_do(
    host: FakeHost, gpu: FakeHost, sndr: Sndr
) -> None:
    fix = {"text": "Install it.", "command": "sndr host install gpu"}
    missing = {"reason": "host_unreachable", "message": "No engine host runs on gpu.", "fix": fix}
    told_so = told(gpu, control_socket=None, control_token=None, engine_host_problem=missing)
    host.answers["GET /v1/hosts/gpu"] = (200, told_so)
    host.answers["POST /v1/hosts/gpu/connect"] = (200, told_so)
    code, _, error = sndr("--host", "gpu", "status")
    assert code == 3
    assert "$ sndr host install gpu" in error
    # What was told before may be otherwise by now: it is looked for again.
    looks = iter([(200, told_so)])
    host.answers["GET /v1/hosts/gpu"] = lambda: next(looks, (200, told(gpu)))
    host.answers["POST /v1/hosts/gpu/connect"] = (200, told(gpu))
    assert sndr("--host", "gpu", "status")[0] == 0
    host.answers["GET /v1/hosts/gpu"] = (200, told(gpu, mode="agentless"))
    assert "sndr host change gpu --engine-host" in sndr("--host", "gpu", "status")[2]


def test_a_change_of_a_setting_is_not_made_here_instead(home: Path, sndr: Sndr) -> None:
    code, _, _ = sndr("--host", "gpu", "settings", "set", "endpoint.port", "9000")
    assert code == 3
    assert not Folders.resolve().settings.exists()


@pytest.mark.parametrize("name", ["-oProxyCommand=x", "../gpu", "GPU", "g\x1b[2J", "g" * 64, "a b"])
def test_a_name_that_no_host_has_is_refused(sndr: Sndr, name: str) -> None:
    code, _, error = sndr("--host", name, "status")
    assert code == 4
    assert "There is no host" in error
    assert "\x1b" not in error


def test_an_empty_name_does_nothing_here(host: FakeHost, sndr: Sndr) -> None:
    code, _, error = sndr("--host", "", "status")
    assert code == 2
    assert "--host names no host" in error
    assert not host.received


def test_an_older_host_is_told_with_the_command_that_updates_it(gpu: FakeHost, sndr: Sndr) -> None:
    gpu.answers["GET /v1/version"] = (200, {**VERSION, "major": 0, "program": "0.0.1"})
    code, _, error = sndr("--host", "gpu", "status")
    assert code == 3
    assert "The engine host on gpu speaks protocol 0" in error
    assert "sndr host update gpu" in error


def test_a_newer_host_is_told_to_be_newer(gpu: FakeHost, sndr: Sndr) -> None:
    gpu.answers["GET /v1/version"] = (200, {**VERSION, "major": 9})
    _, _, error = sndr("--host", "gpu", "status")
    assert "Update this program: the one on gpu is newer." in error
    assert "sndr quit" not in error


@pytest.mark.parametrize(
    "said", [b"", b"\xff\xfe", b"[" * 100_000, b'{"seq": 1}', b'{"pid": "\x1b[2J"}', b"null"]
)
def test_hostile_answers_of_another_machine_are_an_error_and_nothing_else(
    gpu: FakeHost, sndr: Sndr, said: bytes
) -> None:
    gpu.lies = True
    gpu.answers["GET /v1/host"] = (200, said)
    code, out, error = sndr("--host", "gpu", "status")
    assert code == 1
    assert not out
    assert "could not be read" in error
    assert "\x1b" not in error


def test_its_words_are_shown_and_not_obeyed(gpu: FakeHost, sndr: Sndr) -> None:
    gpu.lies = True
    problem = {"reason": "conflict", "message": "\x1b[2Jgone", "fix": {"text": "\x07", "command": "rm -rf /"}}
    gpu.answers["GET /v1/host"] = (409, {"error": problem})
    code, _, error = sndr("--host", "gpu", "status")
    assert code == 6
    assert "\x1b" not in error
    assert "\x07" not in error


def test_a_run_folder_that_others_may_enter_is_not_talked_to(gpu: FakeHost, sndr: Sndr) -> None:
    gpu.folders.run.chmod(0o755)
    code, _, error = sndr("--host", "gpu", "status")
    assert code == 7
    assert "can be entered by others" in error
    assert not gpu.received


def test_a_path_of_this_machine_is_not_sent_there(gpu: FakeHost, sndr: Sndr) -> None:
    code, _, error = sndr("--host", "gpu", "run", "./model.gguf")
    assert code == 2
    assert "is a path of this machine: give the whole path on gpu" in error


def test_a_host_that_was_asked_to_end_is_waited_for(gpu: FakeHost, sndr: Sndr) -> None:
    asked: list[bool] = []

    def version() -> object:
        if len(asked) < 1 or not any(one[0] == "POST /v1/host/quit" for one in gpu.received):
            asked.append(True)
            return (200, VERSION)
        return (401, {"error": {"reason": "unauthorized", "message": "gone"}})

    gpu.answers["GET /v1/version"] = version
    gpu.answers["POST /v1/host/quit"] = (200, {})
    code, out, _ = sndr("--host", "gpu", "quit")
    assert code == 0
    assert "The host on gpu has ended." in out


def test_help_says_how_a_host_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--help"])
    assert "--host NAME" in capsys.readouterr().out
