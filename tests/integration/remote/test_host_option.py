"""`sndr --host NAME` from nothing to a chat: real ssh through a jump host, a real host in a second home."""

import json

import pytest

from tests.integration.host_process import serving, sndr
from tests.integration.remote.machines import Machines

pytestmark = pytest.mark.timeout(300)


def test_a_chat_is_answered_there_and_nothing_runs_here(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SNDR_SSH_CONFIG", str(machines.config))
    with serving(), machines.engine_host():
        assert sndr("host", "add", "gpu").code == 0
        started = sndr("--host", "gpu", "run", "--demo", "--detach")
        assert started.code == 0, started.err
        assert "sndr --host gpu stop" in started.out
        shown = sndr("--host", "gpu", "status", "--json")
        assert [one["state"] for one in json.loads(shown.out)["engines"]] == ["ready"]
        said = sndr("--host", "gpu", "chat", "Hello", "--max-tokens", "8", "--json")
        assert said.code == 0, said.out
        assert json.loads(said.out)["text"]
        assert not json.loads(sndr("status", "--json").out)["engines"], "nothing runs here"
        last = sndr("--host", "gpu", "logs", "host", "--lines", "1")
        assert last.code == 0
        assert sndr("--host", "gpu", "stop").code == 0
        ended = sndr("--host", "gpu", "quit")
        assert ended.code == 0, ended.err
        gone = sndr("--host", "gpu", "status", "--json")
        assert gone.code == 3
        assert sndr("host", "disconnect", "gpu").code == 0
