"""Staging on another machine by command line: real ssh, a real engine host and real engines there."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from engine_host.client.address import RemoteAddress
from engine_host.client.sync import ControlClient
from engine_host.core.package_data import resources
from engine_host.core.paths import Folders
from engine_host.protocol.engines import EngineState
from engine_host.protocol.errors import Reason
from engine_host.protocol.events import JobStepEvent, RemoteHostEvent
from engine_host.protocol.jobs import JobKind
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations import remote_hosts as host_ops
from engine_host.protocol.operations import remote_staging as ops
from engine_host.protocol.operations import table
from engine_host.protocol.remote.staging import PromoteOnHost
from tests.integration.host_process import serving, sndr
from tests.integration.remote.machines import Machines, free_port
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(600)
DEMO = str(next((resources() / "models").rglob("*.gguf")))
CHAT = {"model": "coder", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4}


class Here:
    """The host of this machine, with a route to an engine on the other one."""

    def __init__(self, client: ControlClient, machines: Machines, port: int) -> None:
        self.client = client
        self.machines = machines
        self.url = f"http://127.0.0.1:{port}/v1/chat/completions"

    def sndr(self, *words: str) -> str:
        """Run a command that has to work; its output."""
        ended = sndr(*words, SNDR_SSH_CONFIG=str(self.machines.config))
        assert ended.code == 0, (words, ended.out, ended.err)
        return ended.out

    def last(self, *words: str) -> Any:
        """The last line of JSON of a command that has to work."""
        return json.loads(self.sndr(*words, "--json").strip().splitlines()[-1])

    def refused(self, *words: str) -> dict[str, Any]:
        """The problem of a command that has to fail."""
        ended = sndr(*words, "--json", SNDR_SSH_CONFIG=str(self.machines.config))
        assert ended.code != 0, ended.out
        return ended.problem()

    def answered_by(self) -> str:
        """Who answers a request for the public id."""
        answer = httpx.post(self.url, json=CHAT, timeout=120)
        assert answer.status_code == 200, answer.text
        return answer.headers["x-sndr-engine"]

    def led_to(self) -> tuple[str, ...]:
        """Where the public id leads."""
        return self.client.call(endpoint_ops.ROUTE, id="coder").route.targets.engines

    def step(self, job: str) -> str:
        """What a job does now."""
        step = self.client.call(table.JOB, id=job).step
        return step.detail if step is not None else ""

    def there(self) -> ControlClient:
        """A client of the host there, through the tunnel."""
        folder = Folders.resolve().run / "hosts" / "gpu"
        return ControlClient(RemoteAddress("gpu", folder / "control.sock", folder / "control.token"))

    def running(self) -> set[str]:
        """The names of the engines there."""
        with self.there() as there:
            gone = {EngineState.UNLOADED, EngineState.FAILED}
            return {one.name for one in there.call(table.ENGINES).engines if one.state not in gone}


@pytest.fixture
def here(machines: Machines) -> Iterator[Here]:
    """Everything up to the route, each step by its command."""
    port = free_port()
    config = str(machines.config)
    with machines.engine_host(), serving("--port", str(port), SNDR_SSH_CONFIG=config) as client:
        found = Here(client, machines, port)
        found.sndr("host", "add", "gpu", "direct")
        found.sndr("host", "connect", "gpu")
        assert wait_until(
            lambda: client.call(host_ops.REMOTE_HOST, name="gpu").control_socket is not None, 60
        )
        found.sndr("--host", "gpu", "run", "--demo", "--name", "story", "--detach")
        assert wait_until(lambda: bool(client.call(host_ops.REMOTE_HOST, name="gpu").models), 60)
        found.sndr("routes", "set", "coder", "gpu/story")
        yield found


def test_stage_promote_and_roll_back(here: Here) -> None:
    words = ("host", "stage", "gpu", DEMO, "--for", "coder")
    plan = here.last(*words, "--as", "tale", "--dry-run")
    assert (plan["target"], plan["promote"]) == ("gpu/tale", "sndr host promote gpu coder tale")
    assert {one["what"] for one in plan["changes"]} >= {"engine tale", "engine story"}
    assert plan["needs"][0]["takes"] > 0
    assert plan["needs"][0]["left"] == plan["needs"][0]["free"] - plan["needs"][0]["takes"]
    assert here.running() == {"story"}, "a dry run starts nothing"
    taken = here.refused(*words, "--as", "story")
    assert taken["reason"] == Reason.CONFLICT
    missing = here.refused("host", "stage", "gpu", "$(touch x)`;'", "--as", "other")
    assert missing["reason"] == Reason.MODEL_FILE_MISSING
    assert here.running() == {"story"}

    # One that hangs and dies while it is asked: it is staged, and not promoted.
    frozen = here.last(*words, "--as", "small")["engine"]
    with here.there() as there:
        pid = there.call(table.ENGINE, id=frozen).pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    asked = PromoteOnHost(route="coder", engine="small", stop_old=True)
    job = here.client.call(ops.PROMOTE, asked, name="gpu")
    assert wait_until(lambda: here.step(job.id) == "small: chat", 60)
    os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: here.client.call(table.JOB, id=job.id).ended, 60)
    failed = here.client.call(table.JOB, id=job.id).error
    assert failed is not None
    assert failed.reason is Reason.VERIFICATION_FAILED
    assert failed.evidence["failed"] == "chat"
    assert [one["passed"] for one in failed.evidence["checks"]] == [True, False]
    assert here.led_to() == ("gpu/story",)
    assert wait_until(lambda: here.running() == {"story"}, 60)

    staged = here.last(*words, "--as", "tale")
    assert (staged["target"], staged["host"]) == ("gpu/tale", "gpu")
    assert here.answered_by() == "gpu/story", "a staged engine gets nothing"
    moves = here.last("host", "promote", "gpu", "coder", "tale", "--stop-old", "--dry-run")
    assert [one["target"] for one in moves["ends"]] == ["gpu/story"]
    assert "long prompt" in moves["checks"]
    done = here.last("host", "promote", "gpu", "coder", "gpu/tale", "--stop-old")
    assert all(one["passed"] for one in done["checks"])
    assert [one["target"] for one in done["ended"]] == ["gpu/story"], done
    assert here.answered_by() == "gpu/tale"
    assert here.running() == {"tale"}
    again = here.refused("host", "promote", "gpu", "coder", "tale")
    assert again["reason"] == Reason.CONFLICT

    back = here.last("host", "rollback", "gpu")
    assert [one["target"] for one in back["started"]] == ["gpu/story"]
    assert here.answered_by() == "gpu/story"
    assert here.refused("host", "rollback", "gpu")["reason"] == Reason.NOT_FOUND, "it was taken back"

    restarted = here.last("--host", "gpu", "restart", "tale")
    assert (restarted["name"], restarted["state"]) == ("tale", "ready")
    assert here.running() == {"story", "tale"}

    here.sndr("host", "promote", "gpu", "coder", "tale")
    here.sndr("routes", "back", "coder")
    assert here.refused("host", "rollback", "gpu")["reason"] == Reason.NOT_FOUND, "it was taken back already"
    assert here.led_to() == ("gpu/story",)

    # A roll-back connects the machine that it has to ask.
    here.sndr("routes", "back", "coder")
    assert here.led_to() == ("gpu/tale",)
    here.sndr("host", "disconnect", "gpu")
    assert here.last("host", "rollback", "coder")["started"] == []
    assert here.led_to() == ("gpu/story",)


def test_a_connection_lost_in_mid_promotion_changes_nothing(here: Here) -> None:
    here.sndr("host", "stage", "gpu", DEMO, "--as", "tale")
    asked = PromoteOnHost(route="coder", engine="tale", stop_old=True)
    assert here.client.version is not None
    job = here.client.call(ops.PROMOTE, asked, name="gpu")
    here.machines.target.stop()
    for event in here.client.events(here.client.version.seq):
        if isinstance(event, JobStepEvent):
            assert event.job.kind is not JobKind.ROUTE_PROMOTE or (
                event.job.step is None or event.job.step.name != "flip"
            )
        if here.client.call(table.JOB, id=job.id).ended:
            break
    ended = here.client.call(table.JOB, id=job.id)
    assert ended.error is not None
    assert ended.error.reason is Reason.VERIFICATION_FAILED
    assert ended.undone == "coder was not changed."
    assert here.led_to() == ("gpu/story",)
    here.machines.target.start()
    here.sndr("host", "connect", "gpu")
    assert wait_until(lambda: len(here.client.call(host_ops.REMOTE_HOST, name="gpu").models) == 2, 60)
    assert here.answered_by() == "gpu/story"


def test_a_route_follows_a_machine_to_another_address(here: Here, home: Path) -> None:
    place = home / "address"
    place.write_text("127.0.0.1\n", encoding="utf-8")
    here.sndr("host", "change", "gpu", "--address-command", f"cat {place}")
    assert here.client.version is not None
    after = here.client.version.seq
    here.machines.target.stop()
    here.machines.target.address = "127.0.0.2"
    place.write_text("127.0.0.2\n", encoding="utf-8")
    here.machines.target.start()
    here.sndr("host", "connect", "gpu")
    assert wait_until(lambda: bool(here.client.call(host_ops.REMOTE_HOST, name="gpu").models), 60)
    assert here.answered_by() == "gpu/story"
    told = f"Connected to 127.0.0.2:{here.machines.target.port}. It was at 127.0.0.1"
    for event in here.client.events(after):
        if isinstance(event, RemoteHostEvent) and event.remote.sentence.startswith(told):
            break
