"""Ways in that are legal and rare: an agent with many keys, a user's name with a dot, an address of IPv6."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path

import pytest

from engine_host.protocol.errors import Reason
from engine_host.protocol.remote.hosts import RemoteHostState
from tests.integration.remote.conftest import Fleet
from tests.integration.remote.machines import Machines, make_key
from tests.unit.asynchronous import run, until

Open = Callable[..., AbstractAsyncContextManager[Fleet]]


@contextmanager
def agent(folder: Path, *keys: Path) -> Iterator[Path]:
    """Run an ssh-agent that holds keys in this order; the file of its socket."""
    socket = folder / "agent.sock"
    held = subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.DEVNULL)
    try:
        for key in keys:
            subprocess.run(
                ["sh", "-c", 'until [ -S "$SSH_AUTH_SOCK" ]; do sleep 0.02; done; exec ssh-add -q "$0"', key],
                env={"PATH": "/usr/bin:/bin", "SSH_AUTH_SOCK": str(socket)},
                check=True,
                timeout=30,
            )
        yield socket
    finally:
        held.terminate()
        held.wait(10)


@pytest.mark.parametrize("named", [False, True])
def test_an_agent_with_more_keys_than_the_machine_takes(machines: Machines, fleet: Open, named: bool) -> None:
    others = [machines.folder / f"other_{number}" for number in range(8)]
    for other in others:
        make_key(other)
    with agent(machines.folder, *others, machines.key) as socket:
        words = machines.config.read_text(encoding="utf-8").replace(
            f"  IdentityFile {machines.key}\n",
            f"  IdentityAgent {socket}\n" + (f"  IdentityFile {machines.key}.pub\n" if named else ""),
        )
        if not named:
            words = words.replace("IdentitiesOnly yes", "IdentitiesOnly no")
        machines.config.write_text(words, encoding="utf-8")

        async def work() -> None:
            async with fleet() as found:
                found.add("gpu", "direct")
                found.hosts.connect("gpu")
                shown = await found.reach(
                    "gpu", RemoteHostState.CONNECTED if named else RemoteHostState.FAILED
                )
                if named:
                    return
                assert shown.problem is not None
                assert shown.problem.reason is Reason.SSH_AUTH_FAILED
                assert "more keys than it takes" in shown.problem.cause
                assert shown.problem.fix is not None
                assert "IdentitiesOnly" in shown.problem.fix.text
                assert shown.problem.fix.command == "ssh-add -l"

        run(work())


def test_a_user_whose_name_has_a_dot(machines: Machines, fleet: Open) -> None:
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespaces here")
    passwd = machines.folder / "passwd"
    own = Path("/etc/passwd").read_text(encoding="utf-8")
    passwd.write_text(f"{own}first.last:x:0:0::{machines.far}:/bin/sh\n", encoding="utf-8")
    machines.target.over = {Path("/etc/passwd"): passwd}
    machines.target.stop()
    machines.target.start()
    config = machines.config.read_text(encoding="utf-8")
    machines.config.write_text(config.replace("  User root\n", ""), encoding="utf-8")

    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "first.last@direct")
            found.hosts.connect("gpu")
            await found.reach("gpu")
            await until(lambda: found.hosts.shown("gpu").facts_at is not None)

    run(work())
    assert "Accepted publickey for first.last" in machines.target.log.read_text(errors="replace")


@pytest.mark.parametrize("destination", ["root@::1", "ssh://root@[::1]:{port}", "six"])
def test_an_address_of_the_newer_kind(machines: Machines, fleet: Open, destination: str) -> None:
    machines.target.address = "::1"
    machines.target.stop()
    machines.target.start()
    machines.know(machines.target, machines.jump)
    known = machines.known_hosts.read_text(encoding="utf-8").replace("[127.0.0.1]", "[::1]", 1)
    machines.known_hosts.write_text(known, encoding="utf-8")
    common = machines.config.read_text(encoding="utf-8").replace("HostName 127.0.0.1", "HostName ::1", 1)
    machines.config.write_text(common.replace("Host direct\n", "Host ::1 six\n", 1), encoding="utf-8")

    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", destination.format(port=machines.target.port))
            found.hosts.connect("gpu")
            shown = await found.reach("gpu")
            assert "::1" in (shown.address or shown.sentence)
            await until(lambda: found.hosts.shown("gpu").facts_at is not None)

    run(work())
