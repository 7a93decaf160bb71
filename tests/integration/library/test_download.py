"""A model of a FAKE hub downloaded by `sndr` and a real host: paused, gone on with, deleted, restored."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine_host.core.package_data import resources
from engine_host.protocol.operations import library as ops
from tests.integration.host_process import serving, sndr, started
from tests.unit.library.hub.hub_server import COMMIT, HubServer, Served, hub_server
from tests.waiting import wait_until

NAME = "org/demo-GGUF"
DEMO = resources() / "models" / "sndr-demo" / "sndr-demo-q8_0.gguf"


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with hub_server() as made:
        made.repositories[NAME] = Served({"demo-copy-Q8_0.gguf": DEMO.read_bytes()})
        yield made


@pytest.mark.usefixtures("home")
def test_a_download_is_paused_and_gone_on_with(hub: HubServer, tmp_path: Path) -> None:
    elsewhere = hub.elsewhere
    assert elsewhere is not None
    here = {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(tmp_path / "hf")}
    asked = ("models", "download", NAME, "--choice", "Q8_0", "--json")
    with serving(**here) as client:
        found = sndr("models", "search", "demo")
        assert (found.code, NAME in found.out) == (0, True), found
        elsewhere.trickles, hub.repositories[NAME].breaks = True, [6 << 20]
        with started(*asked) as command:
            assert wait_until(lambda: any(one.here for one in client.call(ops.LIBRARY).downloads), 30)
            command.send_signal(signal.SIGINT)
            assert command.wait(20) == 130
        elsewhere.going.set()
        elsewhere.trickles = False
        (paused,) = client.call(ops.LIBRARY).downloads
        assert (paused.job, paused.asked.revision) == (None, COMMIT)
        assert 0 < paused.here < paused.size

        done = sndr(*asked)
        result = json.loads(done.out.splitlines()[-1])
        assert (done.code, result["verified"]) == (0, True), done
        assert result["carried"] == paused.size - paused.here
        assert Path(result["path"]).read_bytes() == DEMO.read_bytes()
        assert "✓ verified" in sndr("models").out

        refused = sndr("models", "remove", result["listed_as"], "--json")
        assert (refused.code, refused.problem()["evidence"]["owner"]) == (6, "Hugging Face")
        gone = sndr("models", "remove", result["listed_as"], "--shared", "--json")
        assert not Path(result["path"]).exists()
        assert sndr("models", "restore", json.loads(gone.out)["id"]).code == 0
        assert Path(result["path"]).exists()
