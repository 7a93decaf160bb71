"""The pauses between tries of a connection; its ssh is FAKE and is never reached."""

import asyncio
from pathlib import Path
from typing import Any

from engine_host.protocol.errors import Problem, Reason
from engine_host.remote.book import KeptHost
from engine_host.remote.ssh.connection import Connection
from engine_host.remote.ssh.folder import folder_of


class _Ssh:
    program = "/usr/bin/ssh"


class _Reaper:
    def remove_with_host(self, _file: Path) -> None:
        """Nothing is ever made."""


class _Away(Connection):
    """A connection to a machine that is away."""

    async def _once(self) -> tuple[Problem, bool]:
        return Problem(reason=Reason.SSH_UNREACHABLE, message="gpu is away."), False


def test_tries_by_hand_do_not_lengthen_the_pauses(tmp_path: Path) -> None:
    told: list[str] = []

    async def work() -> None:
        enough = asyncio.Event()

        def changed() -> None:
            if away.status.next_try_at is None:
                return
            told.append(away.status.sentence)
            if len(told) < 4:
                away.connect()
            else:
                enough.set()

        ssh: Any = _Ssh()
        desk: Any = None
        reaper: Any = _Reaper()
        host = KeptHost(name="gpu", destination="gpu", added_at=0.0)
        away = _Away(host, folder_of(tmp_path, "gpu"), ssh, desk, reaper, changed, lambda _: asyncio.sleep(0))
        away.connect()
        await enough.wait()
        await away.disconnect()

    asyncio.run(work())
    assert told == ["gpu is away. Trying again in 1 s."] * 4
