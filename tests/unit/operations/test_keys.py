"""Keys through the control API: what was made holds at once, and nothing tells a key again."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.keys.file import KeyFile
from engine_host.core.keys.ring import KeyRing
from engine_host.operations.keys import KeyOperations
from engine_host.protocol.endpoint.keys import CreateKey, Permission
from engine_host.protocol.errors import Reason
from tests.unit.api.door import door
from tests.unit.asynchronous import run


def test_a_key_holds_from_the_next_request_on_until_it_is_revoked(home: Path) -> None:
    async def test() -> None:
        ring = KeyRing()
        keys = KeyOperations(KeyFile(home), ring, EventLog(), lambda: False)
        assert keys.own().key is None
        made = await keys.create(CreateKey(name="laptop", permissions=(Permission.INFER,)))
        assert ring.needed
        assert ring.find(made.key.encode()) is not None
        assert keys.own().key == ring.own
        page = await keys.page()
        assert made.key not in page.model_dump_json()
        assert [key.name for key in page.keys] == ["laptop"]
        assert not (await keys.revoke(made.entry.id)).needed
        assert ring.find(made.key.encode()) is None

    run(test())


def test_the_last_key_stays_while_the_network_reaches_the_endpoint(home: Path) -> None:
    async def test() -> None:
        ring = KeyRing()
        keys = KeyOperations(KeyFile(home), ring, EventLog(), lambda: True)
        made = await keys.create(CreateKey(name="only"))
        with pytest.raises(HostError) as refused:
            await keys.revoke("only")
        assert refused.value.reason is Reason.CONFLICT
        assert ring.find(made.key.encode()) is not None

    run(test())


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 61, "\x1b[31m", "\ud800"])
def test_a_name_is_one_short_line(name: str) -> None:
    with pytest.raises(ValidationError):
        CreateKey(name=name)


@pytest.mark.usefixtures("home")
def test_over_the_wire() -> None:
    async def test() -> None:
        async with door() as opened:
            answer = await opened.client.post("/v1/keys", json={"name": "a b", "permissions": ["admin"]})
            assert answer.status_code == 201
            assert answer.json()["key"].startswith("sndr-")
            wrong = await opened.client.post("/v1/keys", json={"name": "c", "permissions": ["root"]})
            assert wrong.status_code == 400
            identity = answer.json()["entry"]["id"]
            assert (await opened.client.delete(f"/v1/keys/{identity}")).json()["keys"] == []
            assert (await opened.client.delete("/v1/keys/none")).status_code == 404

    run(test())
