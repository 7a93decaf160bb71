"""Connections over the real ssh to real sshd: each kind of end has its reason, and what can recovers."""

import asyncio
import contextlib
import os
import signal
import stat
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any

import psutil
import pytest

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason
from engine_host.protocol.remote.hosts import ChangeRemoteHost, RemoteHostState, RemoteMode, SshQuestionKind
from engine_host.remote.engines import RemoteEngines
from engine_host.remote.run import Interpreter, RemoteScript
from engine_host.remote.ssh import connection as ssh_connection
from tests.integration.remote.conftest import Fleet
from tests.integration.remote.machines import Machines, make_key
from tests.unit.asynchronous import run, until

Open = Callable[..., AbstractAsyncContextManager[Fleet]]
ECHO = RemoteScript("echo", Interpreter.SHELL, "printf '%s:' \"$(uname)\"; cat; echo problem >&2; exit 3")
PYTHON = RemoteScript("python", Interpreter.PYTHON, "import sys; print(sys.stdin.read()[::-1])")


def exists(path: str) -> bool:
    """True if there is such a file or folder."""
    return os.path.exists(path)


def is_private(folder: str) -> bool:
    """True for a folder that nobody else may enter."""
    return stat.S_IMODE(os.stat(folder).st_mode) == 0o700


def ssh_processes() -> list[psutil.Process]:
    """The ssh that this test started."""
    found = []
    for one in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if one.name() == "ssh":
                found.append(one)
    return found


def test_through_a_jump_host_programs_run_with_data_of_any_kind(fleet: Open) -> None:
    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "gpu")
            assert found.hosts.connect("gpu").state is RemoteHostState.CONNECTING
            shown = await found.reach("gpu")
            assert shown.address is not None
            assert shown.address.startswith("127.0.0.1:")
            hostile = b'\'; touch /tmp/pwned; "$(id)" \\ \0 \n `id` \xff'
            outcome = await found.hosts.run("gpu", ECHO, hostile)
            assert (outcome.exit, outcome.stdout) == (3, b"Linux:" + hostile)
            assert outcome.stderr == "problem\n"
            assert (await found.hosts.run("gpu", PYTHON, b"abc")).stdout == b"cba\n"
            assert not exists("/tmp/pwned")
            folder = str(found.hosts.connection("gpu").folder.path)
            assert is_private(folder)
            await found.hosts.disconnect("gpu")
            assert not exists(folder)
            assert not ssh_processes()
            states = RemoteHostState
            assert found.states("gpu") == [
                states.DISCONNECTED, states.CONNECTING, states.CONNECTED, states.DISCONNECTED,
            ]  # fmt: skip

    run(work())


def test_output_is_bounded_and_a_program_that_hangs_is_ended(fleet: Open) -> None:
    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "direct")
            found.hosts.connect("gpu")
            await found.reach("gpu")
            much = RemoteScript("much", Interpreter.SHELL, "head -c 3000000 /dev/zero")
            outcome = await found.hosts.run("gpu", much, most=1000)
            assert (outcome.exit, len(outcome.stdout), outcome.cut) == (0, 1000, True)
            hangs = RemoteScript("hangs", Interpreter.SHELL, "cat; sleep 600")
            assert (await found.hosts.run("gpu", hangs, seconds=1.0)).timed_out

    run(work())


def test_a_new_host_key_is_asked_for_once_and_kept_by_ssh(fleet: Open, machines: Machines) -> None:
    machines.known_hosts.unlink()

    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "direct")
            found.hosts.connect("gpu")
            question = await found.question()
            assert question.kind is SshQuestionKind.HOST_KEY
            assert not question.secret
            assert question.fingerprint == machines.fingerprint(machines.target)
            assert found.hosts.shown("gpu").state is RemoteHostState.ASKING
            await found.answer(question)
            await found.reach("gpu")
            await found.hosts.disconnect("gpu")
            found.hosts.connect("gpu")
            await found.reach("gpu")
            assert found.states("gpu").count(RemoteHostState.ASKING) == 1
        assert str(machines.target.port) in machines.known_hosts.read_text()

    run(work())


def test_whatever_the_configuration_says_keys_are_asked_for_and_the_connection_is_ours(
    fleet: Open, machines: Machines
) -> None:
    machines.known_hosts.unlink()
    odd = (
        "StrictHostKeyChecking no", "ControlMaster auto", f"ControlPath {machines.folder}/theirs",
        "ControlPersist yes", f"LocalForward 127.0.0.1:{machines.target.port} 127.0.0.1:1", "LogLevel QUIET",
        "RemoteCommand touch pwned", "RequestTTY force", "ForwardAgent yes", "BatchMode yes",
        "ServerAliveInterval 0",
    )  # fmt: skip
    machines.write_config(more="Host *\n" + "".join(f"  {line}\n" for line in odd))

    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "direct")
            found.hosts.connect("gpu")
            question = await found.question()
            assert question.kind is SshQuestionKind.HOST_KEY
            await found.answer(question)
            await found.reach("gpu")
            assert (await found.hosts.run("gpu", PYTHON, b"abc")).stdout == b"cba\n"
            machines.target.signal(signal.SIGSTOP)
            await found.reach("gpu", RemoteHostState.RECONNECTING)
            machines.target.signal(signal.SIGCONT)
        assert not ssh_processes()

    run(work())
    assert not (machines.far / "pwned").exists()
    assert not (machines.folder / "theirs").exists()


def test_the_key_of_a_jump_host_is_asked_for_whatever_the_configuration_says(
    fleet: Open, machines: Machines
) -> None:
    machines.know(machines.target)
    machines.write_config(more="Host *\n  StrictHostKeyChecking no\n")

    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "gpu")
            found.hosts.connect("gpu")
            question = await found.question()
            assert question.kind is SshQuestionKind.HOST_KEY
            assert question.fingerprint == machines.fingerprint(machines.jump)
            await found.answer(question)
            await found.reach("gpu")

    run(work())


def test_a_jump_host_of_which_no_new_key_is_taken(fleet: Open, machines: Machines) -> None:
    machines.know(machines.target)
    machines.write_config(more="Host jump\n  StrictHostKeyChecking yes\n")

    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "gpu")
            found.hosts.connect("gpu")
            await found.reach("gpu", RemoteHostState.FAILED)
            assert RemoteHostState.ASKING not in found.states("gpu")

    run(work())


def test_a_configuration_that_takes_no_new_key_is_obeyed(fleet: Open, machines: Machines) -> None:
    machines.known_hosts.unlink()
    machines.write_config(more="Host *\n  StrictHostKeyChecking yes\n")

    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "direct")
            found.hosts.connect("gpu")
            shown = await found.reach("gpu", RemoteHostState.FAILED)
            assert shown.problem is not None
            assert shown.problem.reason is Reason.HOST_KEY_UNKNOWN
            assert RemoteHostState.ASKING not in found.states("gpu")

    run(work())


def test_a_new_host_key_that_is_refused_is_not_kept(fleet: Open, machines: Machines) -> None:
    machines.known_hosts.unlink()

    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "direct")
            found.hosts.connect("gpu")
            await found.answer(await found.question(), accept=False)
            shown = await found.reach("gpu", RemoteHostState.FAILED)
            assert shown.problem is not None
            assert shown.problem.reason is Reason.HOST_KEY_UNKNOWN
            assert shown.problem.evidence["fingerprint"] == machines.fingerprint(machines.target)
        assert not machines.known_hosts.exists() or not machines.known_hosts.read_text()

    run(work())


def test_a_changed_host_key_stops_and_cannot_be_accepted(fleet: Open, machines: Machines) -> None:
    machines.target.stop()
    make_key(machines.target.host_key)
    machines.target.start()

    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "gpu")
            found.hosts.connect("gpu")
            shown = await found.reach("gpu", RemoteHostState.FAILED)
            problem = shown.problem
            assert problem is not None
            assert problem.reason is Reason.HOST_KEY_CHANGED
            assert (problem.evidence["key_file"], problem.evidence["key_line"]) == (
                str(machines.known_hosts), 1,
            )  # fmt: skip
            assert problem.evidence["fingerprint"] == machines.fingerprint(machines.target)
            assert problem.fix is not None
            assert problem.fix.command is not None
            assert f"[127.0.0.1]:{machines.target.port}" in problem.fix.command
            assert not found.hosts.desk.waiting
            assert RemoteHostState.ASKING not in found.states("gpu")

    run(work())


def test_a_jump_host_whose_key_changed_is_named_with_the_command_that_forgets_it(
    fleet: Open, machines: Machines
) -> None:
    machines.jump.stop()
    make_key(machines.jump.host_key)
    machines.jump.start()

    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "gpu")
            found.hosts.connect("gpu")
            problem = (await found.reach("gpu", RemoteHostState.FAILED)).problem
            assert problem is not None
            assert problem.reason is Reason.HOST_KEY_CHANGED
            assert "jump host before gpu" in problem.message
            assert problem.evidence["fingerprint"] == machines.fingerprint(machines.jump)
            assert problem.fix is not None
            assert problem.fix.command is not None
            assert f"[127.0.0.1]:{machines.jump.port}" in problem.fix.command
            assert RemoteHostState.ASKING not in found.states("gpu")
        assert not ssh_processes()

    run(work())


@pytest.mark.parametrize("changed", [False, True])
def test_a_command_of_ones_own_that_leads_there(fleet: Open, machines: Machines, changed: bool) -> None:
    through = f"ssh -F {machines.config} -W %h:%p jump"
    machines.write_config(
        more=f"Host own\n  HostName 127.0.0.1\n  Port {machines.target.port}\n  ProxyCommand {through}\n"
        f"  User root\n  IdentityFile {machines.key}\n  UserKnownHostsFile {machines.known_hosts}\n"
    )
    if changed:
        machines.jump.stop()
        make_key(machines.jump.host_key)
        machines.jump.start()

    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "own")
            found.hosts.connect("gpu")
            if not changed:
                await found.reach("gpu")
                return
            problem = (await found.reach("gpu", RemoteHostState.FAILED)).problem
            assert problem is not None
            assert problem.reason is Reason.SSH_FAILED
            assert problem.fix is not None
            assert problem.fix.command == "ssh own"
            assert RemoteHostState.RECONNECTING not in found.states("gpu"), "no other try mends it"

    run(work())


def test_a_passphrase_is_asked_for_again_until_it_is_right(fleet: Open, machines: Machines) -> None:
    machines.lock_key("open sesame")

    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "direct")
            found.hosts.connect("gpu")
            question = await found.question()
            assert (question.kind, question.secret) == (SshQuestionKind.PASSPHRASE, True)
            assert not question.again
            await found.answer(question, "wrong")
            question = await found.question()
            assert question.again
            await found.answer(question, "open sesame")
            await found.reach("gpu")
            assert "sesame" not in "".join(event.model_dump_json() for event in found.events)

    run(work())


@pytest.mark.parametrize("interactive", [False, True])
def test_a_password_is_asked_for_again_until_it_is_right(
    fleet: Open, machines: Machines, interactive: bool
) -> None:
    if not machines.ask_for_password("tr0ub4dor & 3", interactive=interactive):
        pytest.skip("No sshd has a password of its own here: mount namespaces or PAM are missing.")

    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "direct")
            found.hosts.connect("gpu")
            question = await found.question()
            assert (question.kind, question.secret, question.again) == (SshQuestionKind.PASSWORD, True, False)
            await found.answer(question, "wrong")
            question = await found.question()
            assert question.again
            await found.answer(question, "tr0ub4dor & 3")
            await found.reach("gpu")
            outcome = await found.hosts.run("gpu", ECHO, b"asked once")
            assert outcome.stdout.endswith(b"asked once"), "over the connection that stands"
            assert "tr0ub4dor" not in "".join(event.model_dump_json() for event in found.events)

    run(work())


def test_a_wrong_passphrase_ends_with_a_reason_and_is_not_tried_on(fleet: Open, machines: Machines) -> None:
    machines.lock_key("open sesame")

    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "direct")
            found.hosts.connect("gpu")
            for _ in range(3):
                await found.answer(await found.question(), "wrong")
            shown = await found.reach("gpu", RemoteHostState.FAILED)
            assert shown.problem is not None
            assert shown.problem.reason is Reason.SSH_AUTH_FAILED
            assert "wrong" in shown.problem.cause

    run(work())


def test_a_key_that_is_not_allowed_there(fleet: Open, machines: Machines) -> None:
    other = machines.folder / "other_key"
    make_key(other)
    machines.write_config(other)

    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "direct")
            found.hosts.connect("gpu")
            shown = await found.reach("gpu", RemoteHostState.FAILED)
            assert shown.problem is not None
            assert shown.problem.reason is Reason.SSH_AUTH_FAILED

    run(work())


@pytest.mark.parametrize("destination", ["direct", "gpu"])
def test_a_killed_sshd_is_noticed_and_connected_again(
    fleet: Open, machines: Machines, destination: str
) -> None:
    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", destination)
            found.hosts.connect("gpu")
            await found.reach("gpu")
            machines.target.stop()
            shown = await found.reach("gpu", RemoteHostState.RECONNECTING)
            assert shown.problem is not None
            assert shown.problem.reason is Reason.SSH_LOST
            with pytest.raises(HostError) as refused:
                await found.hosts.run("gpu", ECHO)
            assert refused.value.reason is Reason.SSH_LOST
            await until(
                lambda: (p := found.hosts.shown("gpu").problem) and p.reason is Reason.SSH_UNREACHABLE
            )
            machines.target.start()
            await found.reach("gpu")
            assert found.hosts.shown("gpu").problem is None

    run(work())


def test_who_needs_a_lost_machine_brings_the_next_try_forward(
    fleet: Open, machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh_connection, "_FIRST_PAUSE", 3600.0)

    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "direct")
            found.hosts.connect("gpu")
            await found.reach("gpu")
            machines.target.stop()
            shown = await found.reach("gpu", RemoteHostState.RECONNECTING)
            assert shown.next_try_at is not None
            machines.target.start()
            lost = "gpu is not connected. The connection to direct was lost."
            assert RemoteEngines(found.hosts).why_not("gpu/demo") == lost
            await found.reach("gpu")

    run(work())


def test_a_frozen_machine_is_noticed(fleet: Open, machines: Machines) -> None:
    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "direct")
            found.hosts.connect("gpu")
            await found.reach("gpu")
            machines.target.signal(signal.SIGSTOP)
            shown = await found.reach("gpu", RemoteHostState.RECONNECTING)
            assert shown.problem is not None
            assert shown.problem.reason is Reason.SSH_LOST
            machines.target.signal(signal.SIGCONT)
            await found.reach("gpu")

    run(work())


def test_who_connects_while_it_is_ended_gets_one_connection_and_no_ssh_is_left(
    fleet: Open, machines: Machines
) -> None:
    async def meanwhile(found: Fleet, ending: Coroutine[Any, Any, object]) -> None:
        task = asyncio.create_task(ending)
        await asyncio.sleep(0)
        found.hosts.connect("gpu")
        await task

    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "direct")
            found.hosts.connect("gpu")
            await found.reach("gpu")
            await meanwhile(found, found.hosts.disconnect("gpu"))
            await found.reach("gpu")
            assert found.hosts.connection("gpu").folder.ssh.exists()
            moved = ChangeRemoteHost(destination="root@direct", mode=RemoteMode.AGENTLESS)
            await meanwhile(found, found.hosts.change("gpu", moved))
            await found.reach("gpu")
            assert found.hosts.connection("gpu").host.destination == "root@direct"
            assert len([one for one in ssh_processes() if "-N" in one.cmdline()]) == 1
            assert (await found.hosts.run("gpu", PYTHON, b"abc")).stdout == b"cba\n"
            await meanwhile(found, found.hosts.remove("gpu"))
            assert not found.hosts.all()
            assert not ssh_processes()

    run(work())
