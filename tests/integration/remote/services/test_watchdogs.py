"""Watchdogs of a machine, read over the real ssh; the services are files alone."""

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from engine_host.operations.remote.sheet import HostSheetOperations
from tests.integration.remote.conftest import Fleet
from tests.integration.remote.machines import Machines
from tests.unit.asynchronous import run

Open = Callable[..., AbstractAsyncContextManager[Fleet]]


def test_what_was_seen_while_nobody_was_connected(fleet: Open, machines: Machines) -> None:
    base = machines.far / ".local" / "share" / "sndr" / "deploy"
    for name in ("sndr-a", "sndr-b; touch pwned", "no-watchdog"):
        (base / name).mkdir(parents=True)
    for name in ("sndr-a", "sndr-b; touch pwned"):
        (base / name / "watchdog.py").touch()
    state = {"state": "given_up", "why": "it does not answer", "at": 1000.0, "restarts": [1.0, 2.0, 3.0]}
    (base / "sndr-a" / "watchdog.json").write_text(json.dumps(state), encoding="utf-8")
    event = json.dumps({"at": 900.0, "state": "restarted", "why": "it hangs"})
    (base / "sndr-a" / "watchdog-events.jsonl").write_text(f"{event}\n" * 200, encoding="utf-8")
    before = sorted(machines.far.rglob("*"))

    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "direct")
            found.hosts.connect("gpu")
            await found.reach("gpu")
            page = await HostSheetOperations(found.hosts).watchdogs("gpu")
            first, second = page.watchdogs
            assert (first.service, first.state, first.restarts) == ("sndr-a", "given_up", 3)
            assert [one.state for one in first.events] == ["restarted"] * 50
            assert (second.service, second.at) == ("sndr-b; touch pwned", None)

    run(work())
    assert sorted(machines.far.rglob("*")) == before
