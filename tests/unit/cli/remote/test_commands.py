"""`sndr host`: what is sent, what is shown, and questions of ssh at a terminal; the host is FAKE."""

import getpass
import json
from collections.abc import Callable
from typing import Any

import pytest

from engine_host.cli.remote import commands, staging
from engine_host.cli.remote.fact_lines import fact_lines
from engine_host.cli.start.host import HostHold, connected
from engine_host.protocol.operations.table import QUIT_HOST
from engine_host.protocol.remote.hosts import (
    NEVER_CONNECTED,
    MemoryHolder,
    RemoteDisk,
    RemoteEngine,
    RemoteFacts,
    RemoteGpu,
)
from tests.unit.cli.fake_host import FakeHost

Sndr = Callable[..., tuple[int, str, str]]
GPU = {
    "name": "gpu", "destination": "me@gpu", "mode": "engine_host",
    "state": "connected", "sentence": "Connected.", "control_socket": "/run/gpu",
}  # fmt: skip
PROBLEM = {"reason": "ssh_auth_failed", "message": "gpu did not let you in.", "evidence": {"exit": 255}}
QUESTION = {
    "id": "q1", "host": "gpu", "kind": "passphrase", "text": "Enter passphrase: \x1b[2J", "asked_at": 1.0,
}  # fmt: skip


def sent(host: FakeHost, what: str) -> list[Any]:
    """The bodies that were sent to a path."""
    return [body for asked, _, body in host.received if asked == what]


def test_add_sends_what_was_said_and_refuses_hostile_names_here(host: FakeHost, sndr: Sndr) -> None:
    host.answers["POST /v1/hosts"] = (200, GPU)
    code, out, _ = sndr("host", "add", "gpu", "me@gpu", "--agentless", "--model-root", "/srv")
    assert code == 0
    assert "sndr host connect gpu" in out
    (body,) = sent(host, "POST /v1/hosts")
    assert (body["name"], body["mode"], body["model_root"]) == ("gpu", "agentless", "/srv")
    for words in (("gpu", "--", "-oProxyCommand=id"), ("gpu", "a;id"), ("../x",), ("local", "gpu")):
        code, _, err = sndr("host", "add", *words)
        assert code == 2, err
    assert len(sent(host, "POST /v1/hosts")) == 1
    _, _, err = sndr("host", "add", "bad name!")
    assert "'bad name!': it is of small letters" in err
    assert "estination" not in err.partition("Error")[2]


def test_a_profile_keeps_what_is_named(host: FakeHost, sndr: Sndr) -> None:
    engines = [{"kind": kind, "pid": 7, "user": "root", "arguments": [kind]} for kind in ("vllm", "ollama")]
    answer = {"host": "gpu", "kept_at": 1.0, "engines": engines[:1], "others": engines[1:]}
    host.answers["POST /v1/hosts/gpu/profile"] = (200, answer)
    code, out, _ = sndr("host", "profile", "gpu", "--keep", "--engine", "vllm", "--engine", "8000")
    assert (code, out.splitlines()) == (0, ["vllm: vllm", "not kept: ollama of root, process 7"])
    assert sent(host, "POST /v1/hosts/gpu/profile") == [{"engines": ["vllm", "8000"]}]
    assert sndr("host", "profile", "gpu", "--all")[0] == 2
    assert sndr("host", "profile", "gpu", "--keep", "--all", "--engine", "vllm")[0] == 2


def test_change_keeps_what_is_not_said(host: FakeHost, sndr: Sndr) -> None:
    host.answers["GET /v1/hosts/gpu"] = (200, {**GPU, "notes": "old", "model_root": "/srv"})
    host.answers["PUT /v1/hosts/gpu"] = (200, GPU)
    code, out, _ = sndr("host", "change", "gpu", "--notes", "", "--address-command", "echo gpu")
    assert (code, out.splitlines()[1:]) == (0, ["Models in: none", "Notes: none"]), "what the host answered"
    (body,) = sent(host, "PUT /v1/hosts/gpu")
    assert (body["destination"], body.get("notes"), body["model_root"]) == ("me@gpu", None, "/srv")
    assert body["address_command"] == "echo gpu"
    # Nothing that a start there does not follow: `sndr host pin` sets that on the machine itself.
    assert sndr("host", "change", "gpu", "--default-pin", "0.32.0")[0] == 2


def test_a_host_without_an_engine_host_says_so_and_what_installs_one(host: FakeHost, sndr: Sndr) -> None:
    fix = {"text": "Install it.", "command": "sndr host install gpu"}
    problem = {"reason": "host_unreachable", "message": "No engine host is installed on gpu.", "fix": fix}
    looked = iter([None, None, problem])
    host.answers["POST /v1/hosts/gpu/connect"] = (200, {**GPU, "control_socket": None})
    host.answers["GET /v1/hosts/gpu"] = lambda: (
        200, {**GPU, "control_socket": None, "engine_host_problem": next(looked)},
    )  # fmt: skip
    said = "No engine host is installed on gpu. Next: sndr host install gpu"
    assert sndr("host", "connect", "gpu")[:2] == (0, f"Connected.\n{said}\n")
    lacking = {**GPU, "control_socket": None, "engine_host_problem": problem}
    host.answers["GET /v1/hosts"] = (200, {"seq": 1, "hosts": [lacking]})
    assert said in sndr("host", "list")[1]


def test_list_says_why_and_when_again(host: FakeHost, sndr: Sndr) -> None:
    failed = {**GPU, "state": "failed", "problem": PROBLEM}
    host.answers["GET /v1/hosts"] = (200, {"seq": 1, "hosts": [failed]})
    code, out, _ = sndr("host", "list")
    assert code == 0
    assert "failed" in out
    assert "gpu did not let you in." in out
    assert "ssh_auth_failed" not in out
    host.answers["GET /v1/hosts"] = (200, {"seq": 1, "hosts": []})
    assert "sndr host candidates" in sndr("host", "list")[1]


def test_remove_names_the_routes_that_led_there(host: FakeHost, sndr: Sndr) -> None:
    routes = [
        {
            "route": {"id": name, "targets": {"engines": [engine]}, "changed_at": 1.0},
            "answers": True,
            "targets": [],
        }
        for name, engine in (("story", "gpu/m"), ("coder", "gpu-2/m"), ("mine", "m"))
    ]
    host.answers["GET /v1/routes"] = (200, {"seq": 1, "routes": routes})
    host.answers["DELETE /v1/hosts/gpu"] = (200, {"seq": 1, "hosts": []})
    _, out, _ = sndr("host", "remove", "gpu")
    assert "answer no more: story\n" in out


def asking(host: FakeHost, question: dict[str, Any]) -> None:
    """A host whose ssh asks once, and is connected when it has an answer."""
    answered: list[bool] = []
    host.answers["POST /v1/hosts/gpu/connect"] = (200, {**GPU, "state": "asking", "sentence": "ssh asks."})
    host.answers["GET /v1/hosts/gpu"] = lambda: (200, GPU if answered else {**GPU, "state": "asking"})
    host.answers["GET /v1/hosts/questions"] = lambda: (
        200, {"seq": 1, "questions": [] if answered else [question]},
    )  # fmt: skip

    def answer() -> tuple[int, Any]:
        answered.append(True)
        return 200, {}

    host.answers["POST /v1/hosts/questions/q1"] = answer


def test_a_passphrase_is_asked_for_without_echo(
    host: FakeHost, sndr: Sndr, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking(host, QUESTION)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr(getpass, "getpass", lambda _prompt: "open sesame")
    code, out, err = sndr("host", "connect", "gpu")
    assert (code, out) == (0, "Connected.\n")
    assert "Enter passphrase" in err
    assert "\x1b" not in err
    assert "sesame" not in out + err
    assert sent(host, "POST /v1/hosts/questions/q1") == [{"accept": True, "answer": "open sesame"}]


@pytest.mark.parametrize(("said", "accept"), [("no", False), ("yes", True)])
def test_a_new_key_is_shown_and_taken_with_a_clear_yes_alone(
    host: FakeHost, sndr: Sndr, monkeypatch: pytest.MonkeyPatch, said: str, accept: bool
) -> None:
    asking(host, {**QUESTION, "kind": "host_key", "text": "ED25519 key fingerprint is SHA256:abc."})
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    typed = iter(["", "y", "ok", said])
    monkeypatch.setattr("builtins.input", lambda _prompt: next(typed))
    _, _, err = sndr("host", "connect", "gpu")
    assert "SHA256:abc" in err
    assert sent(host, "POST /v1/hosts/questions/q1")[0]["accept"] is accept


def test_without_a_terminal_nothing_waits_for_an_answer(host: FakeHost, sndr: Sndr) -> None:
    asking(host, QUESTION)
    code, out, _ = sndr("host", "connect", "gpu", "--json")
    assert code == 3
    assert json.loads(out)["error"]["reason"] == "ssh_auth_failed"
    assert sent(host, "POST /v1/hosts/questions/q1") == [{"accept": False}]


@pytest.mark.parametrize("keeps", [True, False])
def test_one_whose_name_nobody_knows_is_kept_or_dropped_as_a_person_says(
    host: FakeHost, sndr: Sndr, monkeypatch: pytest.MonkeyPatch, keeps: bool
) -> None:
    unknown = {"reason": "ssh_unreachable", "message": "No machine.", "evidence": {NEVER_CONNECTED: True}}
    failed = {**GPU, "state": "failed", "problem": unknown}
    host.answers["POST /v1/hosts/gpu/connect"] = (200, failed)
    host.answers["DELETE /v1/hosts/gpu"] = (200, {"seq": 1, "hosts": []})
    assert sndr("host", "connect", "gpu")[0] == 3
    assert not sent(host, "DELETE /v1/hosts/gpu"), "nobody is there to say so"
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    asked: list[str] = []

    def confirm(text: str, **_: object) -> bool:
        asked.append(text)
        return keeps

    monkeypatch.setattr("click.confirm", confirm)
    code, out, _ = sndr("host", "connect", "gpu")
    assert (code, asked) == (3, ["No machine. Keep gpu, to connect it later?"])
    assert (len(sent(host, "DELETE /v1/hosts/gpu")), "gpu is forgotten." in out) == (not keeps, not keeps)


def test_a_host_that_cannot_be_reached_is_told_once_and_not_waited_for(host: FakeHost, sndr: Sndr) -> None:
    lost = {"reason": "ssh_unreachable", "message": "gpu cannot be reached."}
    again = {**GPU, "state": "reconnecting", "problem": lost, "next_try_at": 4e9}
    host.answers["POST /v1/hosts/gpu/connect"] = (200, again)
    code, _, err = sndr("host", "connect", "gpu")
    assert code == 3
    assert "cannot be reached" in err


@pytest.mark.parametrize("command", [("connect", "nope"), ("shell", "nope"), ("stage", "nope", "demo")])
@pytest.mark.parametrize("started_here", [True, False])
def test_an_unknown_host_leaves_no_engine_host_that_was_started_for_it(
    host: FakeHost, sndr: Sndr, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], started_here: bool
) -> None:
    def found(**_: object) -> HostHold:
        return HostHold(connected(), detached=started_here)

    monkeypatch.setattr(commands, "find_or_start", found)
    monkeypatch.setattr(staging, "find_or_start", found)
    unknown = {"error": {"reason": "not_found", "message": "There is no host 'nope'."}}
    host.answers["POST /v1/hosts/nope/connect"] = (404, unknown)
    host.answers[f"{QUIT_HOST.method} {QUIT_HOST.path}"] = (QUIT_HOST.status, {})
    code, _, err = sndr("host", *command)
    assert (code, "no host 'nope'" in err) == (4, True)
    assert bool(sent(host, f"{QUIT_HOST.method} {QUIT_HOST.path}")) is started_here


def test_facts_have_their_age_and_what_is_not_measured_is_said() -> None:
    facts = RemoteFacts(
        host="gpu",
        read_at={"gpus": 40.0, "disks": 100.0, "engines": 100.0, "tools": 100.0},
        problems={"units": "there is no systemctl"},
        driver="550.90",
        gpus=(RemoteGpu(index=0, uuid="GPU-1", name="H200", memory_total=1 << 37, nvlinks=18),),
        holders=(MemoryHolder(gpu="GPU-1", pid=7, name="vllm", memory=1 << 30),),
        disks=(RemoteDisk(device="/dev/a", mount="/", total=1 << 40, free=1 << 30, is_root=True),),
        engines=(RemoteEngine(kind="vllm", pid=7, user="me", arguments=("vllm",), listens=("*:8",)),),
        tools={"cc": "/usr/bin/cc"},
    )
    told = "\n".join(fact_lines(facts, 100.0))
    assert "gpus (1 min ago)" in told
    assert "not measured" in told
    assert "18 NVLinks" in told
    assert "of GPU 0 held by vllm (pid 7)" in told
    assert "root disk" in told
    assert "units (never read; there is no systemctl)" in told
    assert fact_lines(RemoteFacts(host="x"), 1.0) == ["Nothing was read of x yet: sndr host probe x"]
