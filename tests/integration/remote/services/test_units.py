"""Units and containers by command line: a real service manager and a real Podman behind a real sshd.

The engine in them is FAKE, but for one test that lets the real llama.cpp answer from a unit of this machine.
"""

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from engine_host.deploy.images import image_of
from engine_host.protocol.catalog import PresetEngine
from tests.integration.host_process import SNDR, Ended, environment, serving, started
from tests.integration.remote.install.machines import tree
from tests.integration.remote.machines import Machines, free_port
from tests.integration.remote.services.service_managers import (
    can_run_podman,
    can_run_systemd,
    fake_engine,
    podman,
    user_manager,
)
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(600)
with_systemd = pytest.mark.skipif(not can_run_systemd(), reason="needs root, systemd and its journal")
with_podman = pytest.mark.skipif(not can_run_podman(), reason="needs root, Podman, runc and gcc")
NAME = "sndr-demo-llamacpp"
CONTENT = b"GGUF and more" * 1000


def sndr(*arguments: str) -> Ended:
    """Run a command that may take a minute."""
    ended = subprocess.run(
        [*SNDR, *arguments],
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def told(*arguments: str) -> dict[str, object]:
    """The last value that a command prints as JSON, which ends well."""
    ended = sndr(*arguments, "--json")
    assert ended.code == 0, ended.out + ended.err
    value = json.loads(ended.out.splitlines()[-1])
    assert isinstance(value, dict)
    return value


def answered(port: int) -> str:
    """What the FAKE engine says it serves."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=10) as answer:
        return str(json.load(answer)["data"][0]["id"])


@contextmanager
def followed() -> Iterator[list[str]]:
    """The newest line of the service and all that it writes from then on, for one who follows it."""
    seen: list[str] = []
    with started("host", "logs", "gpu", NAME, "--follow", "--lines", "1") as following:
        assert following.stdout is not None
        seen.append(following.stdout.readline())
        assert "FAKE engine listens" not in seen[0]
        reader = threading.Thread(target=seen.extend, args=(following.stdout,), daemon=True)
        reader.start()
        yield seen
        following.kill()
        reader.join()


@pytest.fixture
def far(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> Machines:
    """The machines, known to this host."""
    monkeypatch.setenv("SNDR_SSH_CONFIG", str(machines.config))
    return machines


def with_variables(machines: Machines, variables: dict[str, str]) -> None:
    """Let logins there have variables."""
    machines.target.stop()
    machines.target.variables = tuple(f"{name}={value}" for name, value in variables.items())
    machines.target.start()


@pytest.fixture
def units(far: Machines) -> Iterator[Machines]:
    """A machine with a real service manager of its user, and a FAKE llama-server."""
    program = fake_engine(far.folder / "bin" / "llama-server")
    # The journal of that service manager lies elsewhere than the machine's own.
    journal = program.with_name("journalctl")
    real = f'exec {shutil.which("journalctl")} --directory={far.folder / "log" / "journal"} "$@"'
    journal.write_text(f"#!/bin/sh\n{real}\n", encoding="utf-8")
    journal.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    with user_manager(far.folder, far.far, PATH=path) as variables:
        with_variables(far, {name: value for name, value in variables.items() if name != "HOME"})
        yield far


@with_systemd
def test_a_unit_over_ssh_from_nothing_and_back(units: Machines) -> None:
    port, far = str(free_port()), units.far
    with serving():
        assert sndr("host", "add", "gpu", "direct", "--agentless").code == 0
        assert sndr("host", "connect", "gpu").code == 0
        before = tree(far)
        lacking = sndr("host", "unit", "install", "gpu", "demo-llamacpp", "--json")
        assert lacking.problem()["reason"] == "engine_unusable", lacking.out
        program = str(units.folder / "bin" / "llama-server")
        install = ("host", "unit", "install", "gpu", "demo-llamacpp", "--port", port, "--program", program)
        planned = sndr(*install, "--dry-run")
        assert planned.code == 0, planned.err
        assert f"+ {far}/.config/systemd/user/{NAME}.service" in planned.out
        assert tree(far) == before, "a dry run changes nothing"

        done = told(*install)
        service = done["service"]
        assert isinstance(service, dict)
        assert (service["state"], service["enabled"], service["ours"]) == ("running", True, True)
        assert answered(int(port)) == "sndr-demo"
        assert done["route"] == "sndr routes set sndr-demo gpu/sndr-demo"
        assert told(*install)["unchanged"] is True, "the same twice changes nothing"

        listed = told("host", "unit", "list", "gpu")
        services = listed["services"]
        assert isinstance(services, list)
        assert [one["name"] for one in services if one["ours"]] == [NAME]
        lines = sndr("host", "logs", "gpu", NAME)
        assert "FAKE engine listens" in lines.out
        assert "\033" not in lines.out, "what a log has for the terminal is shown, not obeyed"

        stopped = told("host", "unit", "stop", "gpu", "demo-llamacpp")["service"]
        assert isinstance(stopped, dict)
        assert stopped["state"] == "stopped"
        with followed() as new:
            for action, state in (("start", "running"), ("restart", "running"), ("disable", "running")):
                after = told("host", "unit", action, "gpu", NAME)["service"]
                assert isinstance(after, dict)
                assert (action, after["state"], after["enabled"]) == (action, state, action != "disable")
            assert wait_until(lambda: sum("FAKE engine listens" in line for line in new) == 2, 30), new

        # Changed by hand, and an update that does not start: nothing is lost.
        unit = far / ".config/systemd/user" / f"{NAME}.service"
        own = unit.read_text(encoding="utf-8") + "# mine\n"
        unit.write_text(own, encoding="utf-8")
        refused = sndr(*install, "--set", "context=4096", "--json")
        assert (refused.code, refused.problem()["reason"]) == (6, "conflict")
        assert unit.read_text(encoding="utf-8") == own
        broken = sndr(*install[:-1], "/nonexistent/llama-server", "--replace", "--json")
        assert broken.problem()["reason"] == "engine_start_failed", broken.out
        assert "What ran before runs again." in broken.problem()["message"]
        assert unit.read_text(encoding="utf-8") == own
        assert answered(int(port)) == "sndr-demo"

        asked = sndr("host", "unit", "remove", "gpu", NAME)
        assert asked.code == 2, "without a yes nothing is removed"
        assert sndr("host", "unit", "remove", "gpu", NAME, "--yes", "--replace").code == 0
        assert sndr("host", "disconnect", "gpu").code == 0
        assert tree(far) == before


@with_systemd
def test_a_unit_that_was_told_so_has_its_deleted_model_brought_again(units: Machines) -> None:
    sha256, commit = hashlib.sha256(CONTENT).hexdigest(), "c" * 40
    repository = units.far / ".cache/huggingface/hub/models--me--m"
    model, blob = repository / "snapshots" / commit / "m.gguf", repository / "blobs" / sha256
    for one in (model, blob):
        one.parent.mkdir(parents=True)
    blob.write_bytes(CONTENT)
    model.symlink_to(blob)
    unknown = units.far / "unknown.gguf"
    unknown.write_bytes(CONTENT)
    program = str(units.folder / "bin" / "llama-server")
    named = ("--port", str(free_port()), "--program", program, "--rehydrate")
    install = ("host", "unit", "install", "gpu", "demo-llamacpp", *named)
    with serving(), hub(f"/me/m/resolve/{commit}/m.gguf") as address:
        assert sndr("host", "add", "gpu", "direct", "--agentless").code == 0
        refused = sndr(*install, "--model-path", str(unknown), "--json")
        assert refused.problem()["reason"] == "not_found", refused.out
        assert told(*install, "--model-path", str(model))["service"]
        folder = units.far / ".local/share/sndr/deploy" / NAME
        with (folder / "secrets.env").open("a", encoding="utf-8") as secrets:
            secrets.write(f"HF_ENDPOINT={address}\n")
        assert sndr("host", "unit", "stop", "gpu", NAME).code == 0
        blob.unlink()
        look = ["ssh", "-F", str(units.config), "direct", f"systemctl --user start {NAME}-watchdog.service"]
        subprocess.run(look, env=units.environment(), check=True, timeout=60, stdin=subprocess.DEVNULL)
        assert model.read_bytes() == CONTENT
        seen = sndr("host", "watch", "gpu", "--events")
        for state in ("rehydrating", "rehydrated"):
            assert f"{NAME}: {state}, m.gguf" in seen.out, seen.out
        listed = told("host", "unit", "list", "gpu")["services"]
        assert isinstance(listed, list)
        assert [one["state"] for one in listed if one["ours"]] == ["running"]
        assert sndr("host", "unit", "remove", "gpu", NAME, "--yes").code == 0


@contextmanager
def hub(path: str) -> Iterator[str]:
    """FAKE hub: one file of one commit; tells its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == path else 404)
            self.send_header("Content-Length", str(len(CONTENT) if self.path == path else 0))
            self.end_headers()
            self.wfile.write(CONTENT if self.path == path else b"")

        def log_message(self, *_: object) -> None:
            """Nothing to say."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def cancelled_while_it_waits(*words: str) -> str:
    """Run a command, press Ctrl+C once it waits for the answer of the service, and tell what it says."""
    with started(*words) as command:
        assert command.stderr is not None
        for line in command.stderr:
            if "Wait until it answers" in line:
                break
        command.send_signal(signal.SIGINT)
        said = command.stderr.read()
        assert command.wait(120) != 0
    return said


@with_systemd
def test_a_cancelled_install_is_taken_back_while_the_engine_starts_slowly(units: Machines) -> None:
    port, far = str(free_port()), units.far
    program = str(units.folder / "bin" / "llama-server")
    install = ("host", "unit", "install", "gpu", "demo-llamacpp", "--port", port, "--program", program)
    slow = (*install, "--env", "FAKE_SLOW=500")
    with serving():
        assert sndr("host", "add", "gpu", "direct", "--agentless").code == 0
        assert sndr("host", "connect", "gpu").code == 0
        before = tree(far)
        said = cancelled_while_it_waits(*slow)
        assert "was cancelled. Nothing of it is left." in said
        assert tree(far) == before
        assert NAME not in sndr("host", "unit", "list", "gpu", "--json").out

        assert told(*install)["unchanged"] is False
        first = tree(far)
        said = cancelled_while_it_waits(*slow)
        assert "was cancelled. What ran before runs again." in said
        assert tree(far) == first
        assert wait_until(lambda: listens(int(port)))
        assert told(*install)["unchanged"] is True
        assert sndr("host", "unit", "remove", "gpu", NAME, "--yes").code == 0


@with_systemd
def test_what_is_not_ours_or_not_there_is_said(units: Machines) -> None:
    folder = units.far / ".config/systemd/user"
    folder.mkdir(parents=True)
    text = "[Service]\nExecStart=/bin/sleep 100\n"
    (folder / "others.service").write_text(text, encoding="utf-8")
    (folder / f"{NAME}.service").write_text(text, encoding="utf-8")
    with serving():
        sndr("host", "add", "gpu", "direct", "--agentless")
        for words, reason in (
            (("stop", "gpu", NAME), "conflict"),
            (("stop", "gpu", "no-such"), "not_found"),
            (("stop", "gpu", "$(touch pwned);"), "not_found"),
            (("install", "gpu", "demo-llamacpp"), "conflict"),
            (("install", "gpu", "no-such"), "not_found"),
            (("install", "gpu", "demo-vllm"), "model_file_missing"),
            (("install", "gpu", "gemma-3-1b-8"), "unsupported"),
            (("list", "nobody"), "not_found"),
        ):
            ended = sndr("host", "unit", *words, "--json")
            assert ended.problem()["reason"] == reason, (words, ended.out)
            assert ended.problem()["fix"], words
        assert (folder / f"{NAME}.service").read_text(encoding="utf-8") == text


def test_a_machine_without_a_service_manager_names_the_way_on(far: Machines) -> None:
    with_variables(far, {"XDG_RUNTIME_DIR": str(far.folder)})
    with serving():
        sndr("host", "add", "gpu", "direct", "--agentless")
        planned = sndr("host", "unit", "install", "gpu", "demo-llamacpp", "--dry-run")
        assert planned.code == 6
        assert "systemd cannot be used on gpu" in planned.out
        assert "$ sndr host container install gpu demo-llamacpp" in planned.out
        refused = sndr("host", "unit", "install", "gpu", "demo-llamacpp", "--json")
        assert refused.problem()["reason"] == "unsupported"
        assert not (far.far / ".local").exists()


def test_a_split_model_over_there_is_mounted_whole(far: Machines) -> None:
    models, blobs = far.far / "models", far.far / "blobs"
    models.mkdir()
    blobs.mkdir()
    names = [f"m-0000{number}-of-00002.gguf" for number in (1, 2)]
    for name in names:
        (blobs / name[:7]).write_bytes(b"x" * (1 << 20))
        (models / name).symlink_to(blobs / name[:7])
    install = ("host", "container", "install", "gpu", "demo-llamacpp", "--in", "podman", "--dry-run")
    with serving():
        sndr("host", "add", "gpu", "direct", "--agentless")
        said = sndr(*install, "--model-path", str(models / names[0])).out
        for name in names:
            assert f"source={blobs / name[:7]},target=/sndr/models/{name},readonly" in said, said
        (models / names[1]).unlink()
        lacking = sndr(*install, "--model-path", str(models / names[0]))
        assert f"gpu has no {models / names[1]}." in lacking.out
        assert lacking.code == 6


@with_podman
def test_a_container_over_ssh(far: Machines) -> None:
    port = str(free_port())
    image = image_of(PresetEngine.LLAMA_CPP, gpu=False).address
    with podman(far.folder, image) as variables:
        with_variables(far, variables)
        with serving():
            sndr("host", "add", "gpu", "direct", "--agentless")
            sndr("host", "connect", "gpu")
            before = tree(far.far)
            install = ("host", "container", "install", "gpu", "demo-llamacpp", "--in", "podman")
            done = told(*install, "--port", port)["service"]
            assert isinstance(done, dict)
            assert (done["manager"], done["state"], done["image"]) == ("podman", "running", image)
            assert answered(int(port)) == "sndr-demo"
            assert told(*install, "--port", port)["unchanged"] is True
            assert "FAKE engine listens" in sndr("host", "logs", "gpu", NAME).out
            with followed() as lines:
                stopped = told("host", "container", "stop", "gpu", NAME)["service"]
                assert isinstance(stopped, dict)
                assert (stopped["state"], stopped.get("health")) == ("stopped", None)
                assert told("host", "container", "start", "gpu", NAME)["service"]
                assert wait_until(lambda: any("FAKE engine listens" in line for line in lines), 30), lines
            broken = sndr(*install, "--port", port, "--env", "FAKE_BROKEN=1", "--json")
            assert broken.problem()["reason"] == "engine_start_failed", broken.out
            assert "broken, as it was asked to be" in broken.problem()["cause"]
            assert answered(int(port)) == "sndr-demo", "what ran before runs again"
            assert sndr("host", "container", "remove", "gpu", NAME, "--yes").code == 0
            assert sndr("host", "disconnect", "gpu").code == 0
            assert tree(far.far) == before


@with_systemd
def test_the_real_llama_cpp_answers_from_a_unit_of_this_machine(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = str(free_port())
    folder, own = tmp_path / "manager", tmp_path / "own"
    folder.mkdir()
    own.mkdir()
    with user_manager(folder, own) as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        with serving():
            launch = ("launch", "demo-llamacpp", "--in", "systemd", "--port", port)
            done = told(*launch, "--detach")
            assert done["host"] == "local"
            assert answered(int(port)) == "sndr-demo"
            # It comes with this program, whose next update would take it away.
            assert list((own / ".local/share/sndr/deploy" / NAME / "models").iterdir())
            route = str(done["route"]).split()[1:]
            assert sndr(*route).code == 0
            asked = told("chat", "--model", "sndr-demo", "Who are you?")
            assert "SNDR" in json.dumps(asked)
            assert sndr("services", "remove", NAME, "--yes").code == 0
    assert not list(own.rglob("*.service"))
    shutil.rmtree(folder, ignore_errors=True)
