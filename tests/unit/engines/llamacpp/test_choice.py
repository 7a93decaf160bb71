"""Which llama.cpp server is taken, and what is said where none runs."""

import asyncio
from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.engines.llamacpp import choice
from engine_host.engines.llamacpp.choice import LlamaCppServers
from engine_host.engines.llamacpp.servers import ServerCommand
from engine_host.protocol.errors import Reason
from engine_host.protocol.launch.plans import ServerChoice


def test_a_server_that_is_there_and_does_not_run_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Prober:
        async def probe(self, command: ServerCommand) -> None:
            raise HostError(Reason.ENGINE_UNUSABLE, "libgomp.so.1 is missing.", evidence={"tail": ["x"]})

    monkeypatch.setattr(choice, "ServerProber", Prober)
    command = ServerCommand(ServerChoice.PREBUILT, ("python",), tmp_path)
    monkeypatch.setattr(choice, "prebuilt_command", lambda: command)
    servers = LlamaCppServers(tmp_path, lambda: None)
    with pytest.raises(HostError) as told:
        asyncio.run(servers.find(ServerChoice.AUTO))
    assert told.value.problem.cause == "libgomp.so.1 is missing."
    assert told.value.problem.evidence == {"tail": ["x"]}
    monkeypatch.setattr(choice, "prebuilt_command", lambda: None)
    with pytest.raises(HostError) as told:
        asyncio.run(servers.find(ServerChoice.AUTO))
    assert "not installed" in told.value.problem.cause
