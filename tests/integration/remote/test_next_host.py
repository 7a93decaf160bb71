"""The hosts that were connected are connected again by the next engine host, but not by one of a command."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from engine_host.client.sync import ControlClient, wait_for_host
from engine_host.core.paths import Folders
from engine_host.protocol.operations import remote_hosts as ops
from engine_host.protocol.remote.hosts import RemoteHostState
from tests.integration.host_process import SNDR, environment, sndr
from tests.integration.remote.machines import Machines, free_port
from tests.waiting import wait_until

CONFIG = "SNDR_SSH_CONFIG"


@contextmanager
def owned(config: str, *more: str) -> Iterator[ControlClient]:
    """A host that ends with whoever started it: with its standard input."""
    words = [*SNDR, "serve", "--owner-stdin", "--port", str(free_port()), *more]
    with subprocess.Popen(
        words,
        env=environment(**{CONFIG: config}),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdin is not None
        client = wait_for_host(Folders.resolve(dict(os.environ)), 30)
        assert client is not None
        with client:
            yield client
        process.stdin.close()
        assert process.wait(30) == 0


@pytest.mark.timeout(200)
def test_a_window_connects_again_what_was_connected_when_the_last_one_closed(machines: Machines) -> None:
    config = str(machines.config)

    def state(client: ControlClient) -> RemoteHostState:
        return client.call(ops.REMOTE_HOST, name="gpu").state

    with owned(config, "--connect-hosts") as client:
        assert sndr("host", "add", "gpu", "--agentless").code == 0
        assert sndr("host", "connect", "gpu").code == 0
        assert state(client) is RemoteHostState.CONNECTED
    with owned(config) as client:
        assert state(client) is RemoteHostState.DISCONNECTED
    with owned(config, "--connect-hosts") as client:
        assert wait_until(lambda: state(client) is RemoteHostState.CONNECTED, 60.0)
        assert sndr("host", "disconnect", "gpu").code == 0
    with owned(config, "--connect-hosts") as client:
        assert state(client) is RemoteHostState.DISCONNECTED
