"""`sndr --host NAME` with a second real host in a second home; no ssh lies between."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine_host.client.sync import ControlClient
from engine_host.core.paths import Folders
from tests.integration.host_process import serving, sndr


@pytest.fixture
def gpu(home: Path) -> Iterator[ControlClient]:
    """The other machine's host: a real one in a second home, without ssh between."""
    with serving(SNDR_HOME=str(home / "elsewhere")) as client:
        here = Folders.resolve()
        here.make_run_folder()
        folder = here.run / "hosts" / "gpu"
        folder.mkdir(parents=True, mode=0o700)
        (folder / "control.sock").symlink_to(client.folders.socket)
        (folder / "control.token").symlink_to(client.folders.token)
        yield client


def test_a_chat_is_answered_there_and_nothing_runs_here(gpu: ControlClient) -> None:
    started = sndr("--host", "gpu", "run", "--demo", "--detach")
    assert started.code == 0, started.err
    assert "sndr --host gpu stop" in started.out
    shown = sndr("--host", "gpu", "status", "--json")
    assert [one["state"] for one in json.loads(shown.out)["engines"]] == ["ready"]
    said = sndr("--host", "gpu", "chat", "Hello", "--max-tokens", "8", "--json")
    assert said.code == 0, said.out
    assert json.loads(said.out)["text"]
    assert sndr("status").code == 3, "no host runs here"
    ended = sndr("--host", "gpu", "stop")
    assert ended.code == 0, ended.err
    last = sndr("--host", "gpu", "logs", "host", "--lines", "1")
    assert last.code == 0
    assert sndr("--host", "gpu", "settings", "get", "endpoint.port").code == 0


def test_a_host_there_that_ends_is_said_to_be_gone(gpu: ControlClient) -> None:
    assert gpu.version is not None
    folder = Folders.resolve().run / "hosts" / "gpu"
    (folder / "control.sock").unlink()
    gone = sndr("--host", "gpu", "status", "--json")
    assert gone.code == 3
    assert gone.problem()["fix"]["command"] == "sndr host connect gpu"
