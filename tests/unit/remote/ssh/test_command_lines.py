"""Nothing of this machine's environment gets to a place that another machine names."""

from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.engines.process.reaper import Reaper
from engine_host.protocol.errors import Reason
from engine_host.protocol.remote_hosts import RemoteMode
from engine_host.remote.book import KeptHost
from engine_host.remote.ssh.command_lines import OpenSsh
from engine_host.remote.ssh.connection import Connection
from engine_host.remote.ssh.folder import HostFolder
from engine_host.remote.ssh.questions import QuestionDesk
from tests.unit.asynchronous import run

SECRET = {"PATH": "/usr/bin", "HOME": "/home/me", "HF_TOKEN": "hf_secret"}


def connection(folder: Path, **more: str) -> Connection:
    """A connection that was not made."""

    async def session(_connection: Connection) -> None:
        pass

    return Connection(
        KeptHost(name="gpu", destination="gpu", mode=RemoteMode.AGENTLESS, added_at=1.0, **more),
        HostFolder(folder),
        OpenSsh(SECRET),
        QuestionDesk(folder / "askpass.sock", folder / "askpass", lambda _question, _open: None),
        Reaper("test"),
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
