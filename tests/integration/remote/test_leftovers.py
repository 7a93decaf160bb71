"""Nothing of a connection outlives the host, however that ends: sockets of engines elsewhere among them."""

import shutil
import signal
import subprocess

import pytest

from engine_host.client.sync import wait_for_host
from engine_host.core.paths import Folders
from engine_host.remote.ssh.folder import folder_of
from tests.integration.host_process import sndr, started
from tests.integration.remote.machines import Machines, free_port
from tests.integration.remote.services.service_managers import fake_engine
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc"),
]


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_no_forwarded_socket_is_left(
    machines: Machines, monkeypatch: pytest.MonkeyPatch, end: signal.Signals
) -> None:
    monkeypatch.setenv("SNDR_SSH_CONFIG", str(machines.config))
    program = fake_engine(machines.folder / "bin" / "llama-server")
    port = str(free_port())
    engine = subprocess.Popen([program, "--port", port], stdout=subprocess.DEVNULL)
    try:
        with started("serve") as process:
            client = wait_for_host(Folders.resolve(), 20)
            assert client is not None
            client.close()
            assert sndr("host", "add", "gpu", "direct", "--agentless").code == 0
            assert sndr("host", "connect", "gpu").code == 0
            folder = folder_of(Folders.resolve().run, "gpu").path
            assert wait_until(lambda: list(folder.glob("engine-*.sock")) != [], 60)
            process.send_signal(end)
            process.wait(30)
            assert wait_until(lambda: not folder.exists() or list(folder.iterdir()) == [], 20), list(
                folder.iterdir()
            )
    finally:
        engine.kill()
        engine.wait()
