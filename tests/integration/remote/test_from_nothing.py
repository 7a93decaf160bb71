"""From nothing to a chat that another machine answers: by command line, real ssh, and a real engine there."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from engine_host.client.address import RemoteAddress
from engine_host.client.sync import ControlClient, wait_for_host
from engine_host.core.package_data import resources
from engine_host.core.paths import Folders
from engine_host.core.processes.own_programs import OwnProgram
from engine_host.protocol.endpoint.connect import EndpointModel
from engine_host.protocol.endpoint.requests import RequestQuery
from engine_host.protocol.engines import EngineState, RequestState
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations import remote_hosts as host_ops
from engine_host.protocol.operations import table as ops
from engine_host.protocol.remote.hosts import RemoteHostState
from tests.conftest import processes_of
from tests.integration.host_process import SNDR, alive, serving, sndr, started
from tests.integration.remote.machines import Machines, free_port
from tests.waiting import wait_until

DEMO = next((resources() / "models").rglob("*.gguf"))
CHAT = {"model": "coder", "messages": [{"role": "user", "content": "Tell me a story."}], "stream": True}


class Here:
    """The host of this machine, connected to the other one, with a route to its engine."""

    def __init__(self, client: ControlClient, machines: Machines, port: int) -> None:
        self.client = client
        self.machines = machines
        self.url = f"http://127.0.0.1:{port}/v1/chat/completions"

    def sndr(self, *words: str) -> str:
        """Run a command that has to work; its output."""
        ended = sndr(*words, SNDR_SSH_CONFIG=str(self.machines.config))
        assert ended.code == 0, (words, ended.out, ended.err)
        return ended.out

    def there(self) -> ControlClient:
        """A client of the host there, through the tunnel."""
        folder = Folders.resolve().run / "hosts" / "gpu"
        client = ControlClient(RemoteAddress("gpu", folder / "control.sock", folder / "control.token"))
        client.connect()
        return client

    def state(self) -> RemoteHostState:
        """The state of the connection."""
        return self.client.call(host_ops.REMOTE_HOST, name="gpu").state


@pytest.fixture
def here(machines: Machines) -> Iterator[Here]:
    """Everything up to the route, each step by its command."""
    port = free_port()
    with (
        machines.engine_host(),
        serving("--port", str(port), SNDR_SSH_CONFIG=str(machines.config)) as client,
    ):
        found = Here(client, machines, port)
        found.sndr("host", "add", "gpu", "gpu")
        assert "connected" in found.sndr("host", "connect", "gpu").lower()
        assert wait_until(
            lambda: client.call(host_ops.REMOTE_HOST, name="gpu").control_socket is not None, 30
        )
        found.sndr("--host", "gpu", "run", "--demo", "--name", "story", "--detach")
        assert wait_until(lambda: bool(client.call(host_ops.REMOTE_HOST, name="gpu").models), 30)
        assert "gpu/story (on gpu): runs." in found.sndr("routes", "set", "coder", "gpu/story")
        yield found


def test_the_local_endpoint_answers_with_the_engine_there(here: Here) -> None:
    said = json.loads(here.sndr("chat", "Hello", "--model", "coder", "--max-tokens", "8", "--json"))
    assert said["text"]
    frames = []
    with httpx.stream("POST", here.url, json={**CHAT, "max_tokens": 32}, timeout=60) as answer:
        assert answer.status_code == 200
        assert answer.headers["x-sndr-engine"] == "gpu/story"
        frames = [line.removeprefix("data: ") for line in answer.iter_lines() if line.startswith("data: ")]
    assert frames[-1] == "[DONE]"
    assert {json.loads(frame)["model"] for frame in frames[:-1]} == {"coder"}
    assert len(frames) > 10, "it comes piece by piece"
    assert not here.client.call(ops.ENGINES).engines, "nothing runs here"
    listed = httpx.get(here.url.replace("chat/completions", "models")).json()["data"]
    assert [model["id"] for model in listed] == ["coder"]
    unknown = sndr("routes", "set", "other", "gpu/storx", "--json", SNDR_SSH_CONFIG=str(here.machines.config))
    assert unknown.problem()["evidence"]["near"] == ["gpu/story"]
    # A client that leaves cancels the request there.
    with httpx.stream("POST", here.url, json={**CHAT, "max_tokens": 900}, timeout=60) as answer:
        next(answer.iter_lines())
    with here.there() as there:
        assert wait_until(
            lambda: (
                there.call(endpoint_ops.REQUESTS, RequestQuery()).requests[0].state is RequestState.CANCELLED
            ),
            20,
        ), there.call(endpoint_ops.REQUESTS, RequestQuery())
    # What the connection was told of it stands at /metrics here, by names of its own.
    told = r'^sndr_remote_engine_generated_tokens_total\{[^}]*model="story",remote="gpu"\} [1-9]'
    metrics = httpx.URL(here.url).copy_with(path="/metrics")
    assert wait_until(lambda: bool(re.search(told, httpx.get(metrics, timeout=60).text, re.MULTILINE)), 30)
    # An engine that dies there is an error in the stream, and the route says what would help.
    with here.there() as there:
        engine = there.call(ops.ENGINES).engines[0]
    assert engine.pid is not None
    lines = []
    with httpx.stream("POST", here.url, json={**CHAT, "max_tokens": 900}, timeout=60) as answer:
        for line in answer.iter_lines():
            lines.append(line)
            if len(lines) == 5:
                os.kill(engine.pid, signal.SIGKILL)
    last = json.loads(next(line for line in reversed(lines) if line.startswith("data: {"))[6:])
    assert last["error"]["code"], last
    assert wait_until(lambda: not here.client.call(host_ops.REMOTE_HOST, name="gpu").models, 30)
    refused = httpx.post(here.url, json={**CHAT, "stream": False})
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "route_target_not_running")
    assert "sndr --host gpu run story" in refused.json()["error"]["message"]


def test_a_tunnel_that_breaks_in_mid_stream_is_an_error_and_heals(here: Here) -> None:
    lines = []
    with httpx.stream("POST", here.url, json={**CHAT, "max_tokens": 900}, timeout=60) as answer:
        for line in answer.iter_lines():
            lines.append(line)
            if len(lines) == 5:
                here.machines.target.stop()
    last = json.loads(next(line for line in reversed(lines) if line.startswith("data: {"))[6:])
    assert last["error"]["code"] == "host_connection_lost"
    assert wait_until(lambda: here.state() is RemoteHostState.RECONNECTING)
    refused = httpx.post(here.url, json={**CHAT, "stream": False})
    assert refused.status_code == 503
    assert "sndr host connect gpu" in refused.json()["error"]["message"]
    here.machines.target.start()
    here.sndr("host", "connect", "gpu")
    assert wait_until(lambda: bool(here.client.call(host_ops.REMOTE_HOST, name="gpu").models), 30)
    assert short_chat(here).status_code == 200


def short_chat(here: Here) -> httpx.Response:
    """A chat through the route."""
    return httpx.post(here.url, json={**CHAT, "stream": False, "max_tokens": 4}, timeout=60)


def test_after_a_restart_there_the_route_says_why_it_leads_nowhere_or_follows(here: Here) -> None:
    """What a restart of the machine does to it: the engine host there ends, and comes back by its service."""
    here.machines.end_engine_host()
    with here.machines.engine_host():
        assert wait_until(lambda: bool(here.client.call(host_ops.REMOTE_HOST, name="gpu").findings), 60)
        refused = short_chat(here).json()["error"]
        assert refused["code"] == "route_target_not_running"
        assert "story ended with the engine host on gpu (" in refused["message"]
        assert "and does not come back by itself" in refused["message"]
        again = refused["message"].partition("Try: ")[2]
        assert again == "sndr --host gpu run sndr-demo-q8-0 --name story", "as it was started"
        assert again in here.sndr("host", "list")
        here.sndr(*shlex.split(again)[1:], "--detach")
        assert wait_until(lambda: short_chat(here).status_code == 200, 30)
        assert not here.client.call(host_ops.REMOTE_HOST, name="gpu").findings
        # One that its host loads comes back with it, and the route follows.
        here.sndr("--host", "gpu", "stop", "story")
        here.sndr("--host", "gpu", "on-demand", "add", str(DEMO), "--name", "story", "--pin", "--at-start")
        assert wait_until(lambda: "loaded when asked" in here.sndr("routes", "list"), 30)
        here.machines.end_engine_host()
    with here.machines.engine_host():
        there = wait_for_host(here.machines.far_folders, 60)
        assert there is not None
        with there:
            # Before anybody asks for it.
            assert wait_until(
                lambda: [one.state for one in there.call(ops.ENGINES).engines] == [EngineState.READY], 60
            )
        assert wait_until(lambda: short_chat(here).status_code == 200, 60)


def test_an_engine_that_runs_there_already_answers_without_a_host_of_ours(machines: Machines) -> None:
    port, there = free_port(), free_port()
    words = (
        "-m",
        OwnProgram.LLAMA_SERVER,
        "-m",
        str(DEMO),
        "--host",
        "127.0.0.1",
        "--port",
        str(there),
        "-c",
        "1024",
        # Other tests' engines may run on this machine, and are found as well.
        "--alias",
        "runs-already",
    )
    outside = {name: value for name, value in os.environ.items() if not name.startswith("SNDR_")}
    with (
        subprocess.Popen(
            [sys.executable, *words], env=outside, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as engine,
        serving("--port", str(port), SNDR_SSH_CONFIG=str(machines.config)) as client,
    ):
        try:
            assert wait_until(lambda: _answers(there), 60)
            assert sndr("host", "add", "gpu", "gpu", "--agentless").code == 0
            assert sndr("host", "connect", "gpu").code == 0

            def found() -> list[EndpointModel]:
                models = client.call(host_ops.REMOTE_HOST, name="gpu").models
                return [model for model in models if model.id == "runs-already"]

            assert wait_until(lambda: bool(found()), 60)
            (model,) = found()
            assert model.context == 1024
            assert sndr("routes", "set", "coder", f"gpu/{model.id}").code == 0
            url = f"http://127.0.0.1:{port}/v1/chat/completions"
            with httpx.stream("POST", url, json={**CHAT, "max_tokens": 16}, timeout=60) as answer:
                lines = [line for line in answer.iter_lines() if line.startswith("data: ")]
            assert lines[-1] == "data: [DONE]"
            assert json.loads(lines[0][6:])["model"] == "coder"
            assert len(lines) > 8
            engine.kill()
            refused = httpx.post(url, json={**CHAT, "stream": False})
            told = (refused.status_code, refused.json()["error"]["code"])
            assert told in {(502, "host_connection_lost"), (503, "route_target_not_running")}
        finally:
            engine.kill()


def _answers(port: int) -> bool:
    """True once an engine lists its models."""
    try:
        return httpx.get(f"http://127.0.0.1:{port}/v1/models").status_code == 200
    except httpx.HTTPError:
        return False


def test_a_killed_host_leaves_no_ssh(machines: Machines, home: Path) -> None:
    with started("serve", SNDR_SSH_CONFIG=str(machines.config)) as process:
        client = wait_for_host(Folders.resolve(), 20)
        assert client is not None
        client.close()
        assert sndr("host", "add", "gpu", "gpu", "--agentless").code == 0
        assert sndr("host", "connect", "gpu").code == 0
        shell = subprocess.run(
            [*SNDR, "host", "shell", "gpu"], input="echo in $HOME; exit 7\n", capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip
        assert (shell.returncode, shell.stdout.strip()) == (7, f"in {machines.far}"), shell
        ssh = [pid for pid, command in processes_of(home) if command.startswith("ssh ") or "/ssh " in command]
        assert len(ssh) >= 2, "one for the jump host"
        folder = Folders.resolve().run / "hosts" / "gpu"
        assert (folder / "ssh.sock").exists()
        process.kill()
        assert wait_until(lambda: not alive(ssh))
        assert wait_until(lambda: not (folder / "ssh.sock").exists())
    with serving(SNDR_SSH_CONFIG=str(machines.config)) as again:
        assert wait_until(
            lambda: again.call(host_ops.REMOTE_HOST, name="gpu").state is RemoteHostState.CONNECTED
        )
        assert sndr("host", "disconnect", "gpu").code == 0
    with serving(SNDR_SSH_CONFIG=str(machines.config)) as last:
        assert last.call(host_ops.REMOTE_HOST, name="gpu").state is RemoteHostState.DISCONNECTED
