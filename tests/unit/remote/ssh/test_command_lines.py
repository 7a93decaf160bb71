"""Nothing of this machine's environment gets to a place that another machine names."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from engine_host.core.errors import HostError
from engine_host.engines.process.reaper import Reaper
from engine_host.protocol.errors import Reason
from engine_host.protocol.remote.hosts import AddRemoteHost, RemoteHostState, RemoteMode
from engine_host.remote.book import KeptHost
from engine_host.remote.ssh.command_lines import Effective, OpenSsh, by_hand
from engine_host.remote.ssh.connection import Connection
from engine_host.remote.ssh.folder import HostFolder
from engine_host.remote.ssh.questions import QuestionDesk
from tests.unit.asynchronous import run, until

SECRET = {"PATH": "/usr/bin", "HOME": "/home/me", "HF_TOKEN": "hf_secret"}


class FakeReaper(Reaper):
    """A reaper that is not started."""

    def remove_with_host(self, path: Path) -> None:
        """Do nothing."""


def connection(folder: Path) -> Connection:
    """A connection that was not made."""

    async def session(_connection: Connection) -> None:
        pass

    return Connection(
        KeptHost(name="gpu", destination="gpu", mode=RemoteMode.AGENTLESS, added_at=1.0),
        HostFolder(folder),
        OpenSsh(SECRET),
        QuestionDesk(folder / "askpass.sock", folder / "askpass", lambda _question, _open: None),
        FakeReaper("test"),
        lambda: None,
        session,
    )


def test_what_shares_a_connection_knows_no_secret() -> None:
    assert OpenSsh(SECRET).sharing_environment() == {"PATH": "/usr/bin", "HOME": "/home/me", "LC_ALL": "C"}


@pytest.mark.parametrize("told", ["/x/${HF_TOKEN}", "/x/%u", "x/y", "${HF_TOKEN}:1", "a:/x/%h"])
def test_a_place_that_ssh_would_expand_is_not_forwarded_to(tmp_path: Path, told: str) -> None:
    with pytest.raises(HostError) as refused:
        run(connection(tmp_path).forward(tmp_path / "a.sock", told))
    assert refused.value.reason is Reason.SSH_FORWARD_REFUSED
    assert "is no place" in refused.value.problem.message


@pytest.mark.parametrize("command", ["echo 'a", " ", "", "echo a\\"])
def test_what_is_no_command_is_not_kept(command: str) -> None:
    with pytest.raises(ValidationError):
        AddRemoteHost(name="gpu", destination="gpu", address_command=command)


def test_a_defect_while_connecting_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ssh").write_text("#!/bin/sh\n")
    (tmp_path / "ssh").chmod(0o700)
    monkeypatch.setitem(SECRET, "PATH", str(tmp_path))
    found = connection(tmp_path)
    # As an older version kept it.
    found.host = found.host.model_copy(update={"address_command": "echo 'a"})

    async def work() -> None:
        found.connect()
        await until(lambda: found.status.state is RemoteHostState.FAILED)
        assert found.status.problem is not None
        assert found.status.problem.reason is Reason.INTERNAL

    run(work())


def test_an_address_of_one_network_card(tmp_path: Path) -> None:
    effective = Effective("gpu", "22", "me", "ask", None, None)
    argv = OpenSsh({}).master("gpu", tmp_path / "s", tmp_path / "c", effective, "fe80::1%eth0")
    assert "HostName=fe80::1%%eth0" in argv


@pytest.mark.parametrize(
    ("destination", "typed"),
    [
        ("me@gpu", "ssh -v me@gpu"),
        ("ssh://me@gpu:2222", "ssh -v ssh://me@gpu:2222"),
        ("ssh://me@[fe80::1%eth0]:2222", "ssh -v -l me -p 2222 fe80::1%eth0"),
        ("ssh://[::1]", "ssh -v ::1"),
    ],
)
def test_an_address_of_ipv6_with_a_port_is_said_as_ssh_takes_it(destination: str, typed: str) -> None:
    assert by_hand(destination, "-v") == typed
