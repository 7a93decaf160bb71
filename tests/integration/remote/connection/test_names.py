"""Names and addresses that lead nowhere, or elsewhere than before; with real ssh."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from engine_host.protocol.errors import Reason
from engine_host.protocol.remote.hosts import RemoteFacts, RemoteHostState
from tests.integration.remote.conftest import Fleet
from tests.integration.remote.machines import Machines
from tests.unit.asynchronous import run

Open = Callable[..., AbstractAsyncContextManager[Fleet]]


def test_nobody_listens_and_a_name_that_does_not_exist(fleet: Open, machines: Machines) -> None:
    machines.target.stop()

    async def work() -> None:
        async with fleet() as found:
            states = {"gone": RemoteHostState.RECONNECTING, "nowhere": RemoteHostState.FAILED}
            for name, destination in (("gone", "direct"), ("nowhere", "no.such.host.invalid")):
                found.add(name, destination)
                found.hosts.connect(name)
                shown = await found.reach(name, states[name])
                assert shown.problem is not None
                assert shown.problem.reason is Reason.SSH_UNREACHABLE
                assert (shown.next_try_at is None) is (name == "nowhere")
            assert shown.problem is not None
            assert shown.problem.fix is not None
            assert shown.problem.fix.command == "sndr host remove nowhere"
            found.hosts.book.keep_facts(RemoteFacts(host="nowhere", read_at={"system": 1.0}))
        async with fleet() as found:
            # One that was there before may be behind a VPN: it is tried on.
            found.hosts.resume()
            shown = await found.reach("nowhere", RemoteHostState.RECONNECTING)
            assert shown.next_try_at is not None

    run(work())


def test_an_address_command_leads_to_where_the_machine_is_now(fleet: Open, machines: Machines) -> None:
    machines.write_config(
        more=f"Host moved\n  HostName 127.0.0.99\n  Port {machines.target.port}\n  User root\n"
        f"  IdentityFile {machines.key}\n  UserKnownHostsFile {machines.known_hosts}\n"
    )
    known = machines.known_hosts.read_text().replace("[127.0.0.1]", "[127.0.0.99]")
    machines.known_hosts.write_text(known)

    async def work() -> None:
        async with fleet() as found:
            found.add("bad", "moved", address_command="echo '127.0.0.1; id'")
            found.hosts.connect("bad")
            shown = await found.reach("bad", RemoteHostState.RECONNECTING)
            assert shown.problem is not None
            assert "its command told none" in shown.problem.message
            found.add("gpu", "moved", address_command="echo 127.0.0.1")
            found.hosts.connect("gpu")
            shown = await found.reach("gpu")
            assert shown.address == f"127.0.0.1:{machines.target.port}"

    run(work())
