"""Any name can stand in the path of an operation: what it leads to is told in the words of its resource."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from engine_host.client import failures
from engine_host.client.exchange import NOTHING, request_of
from engine_host.core.errors import HostError
from engine_host.core.keys.file import KeyFile
from engine_host.core.keys.ring import Key, digest_of
from engine_host.protocol.endpoint.keys import CreateKey, Permission
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations.definition import Operation
from engine_host.protocol.operations.table import OPERATIONS
from tests.unit.api.door import door

NAMED = tuple(operation for operation in OPERATIONS if operation.parameters)
HOSTILE = (
    "a/b",
    "../x",
    "..",
    ".",
    "...",
    "",
    " ",
    "%2F",
    "a%2Fb",
    "a?b",
    "#",
    "a b",
    "\u00fc",
    "a//b/",
    "-",
)

# What each asks for besides its name, so that it comes as far as looking for it.
LAUNCH = {"preset": "demo-llamacpp"}
BODIES: Mapping[str, dict[str, Any]] = {
    "presets.save": {"text": "format: 1\n"},
    "routes.set": {"engines": ["a"]},
    "routes.cutover": {"engines": ["a"]},
    "hosts.answer": {"accept": True},
    "hosts.change": {"destination": "box"},
    "hosts.stage.plan": {"what": "demo-llamacpp"},
    "hosts.stage": {"what": "demo-llamacpp"},
    "hosts.promote.plan": {"route": "a", "engine": "b"},
    "hosts.promote": {"route": "a", "engine": "b"},
    "hosts.send.plan": {"model": "a"},
    "hosts.send": {"model": "a"},
    "hosts.fetch.plan": {"model": "a"},
    "hosts.fetch": {"model": "a"},
    "services.plan": {"launch": LAUNCH, "manager": "systemd"},
    "services.install": {"launch": LAUNCH, "manager": "systemd"},
    "services.act": {"action": "start"},
    "power.plan": {"gpu": 0},
    "power.set": {"gpu": 0},
}


async def asked(client: Any, operation: Operation[Any, Any], name: str) -> Problem | None:
    """What the client, or the host, says to an operation with this name; None where it was done."""
    try:
        sent = request_of(operation, NOTHING, dict.fromkeys(operation.parameters, name))
    except HostError as error:
        return error.problem
    body = None if operation.method == "GET" else BODIES.get(operation.name, {})
    answer = await client.request(operation.method, sent.path, json=body)
    if answer.is_success:
        return None
    return failures.of_answer(answer.content, answer.status_code).problem


def test_every_operation_takes_every_name() -> None:
    async def work() -> dict[tuple[str, str], Problem | None]:
        async with door() as opened:
            return {
                (operation.name, name): await asked(opened.client, operation, name)
                for operation in NAMED
                for name in HOSTILE
            }

    told = asyncio.run(work())
    unsaid = {
        asked: problem
        for asked, problem in told.items()
        if problem is not None
        and (
            not problem.message
            or problem.fix is None
            or "has nothing that answers" in problem.cause
            or problem.reason is Reason.INTERNAL
        )
    }
    assert not unsaid
    missing = {
        asked: problem.reason
        for asked, problem in told.items()
        if problem is not None and not asked[1].strip() and problem.reason is not Reason.NOT_FOUND
    }
    assert not missing
    for (operation, name), problem in told.items():
        if operation in {"keys.revoke", "jobs.cancel", "requests.show", "presets.show", "hosts.remove"}:
            assert problem is not None
            assert problem.reason is Reason.NOT_FOUND
            assert not name.strip() or name in problem.message


def test_a_path_that_no_operation_has_is_told_with_a_cause_and_a_way_on() -> None:
    async def work() -> Problem:
        async with door() as opened:
            answer = await opened.client.get("/v1/nothing")
            return failures.of_answer(answer.content, answer.status_code).problem

    problem = asyncio.run(work())
    assert problem.message == "The engine host is of another version and cannot do this."
    assert problem.cause == "The engine host has nothing that answers GET /v1/nothing."
    assert problem.fix is not None


@pytest.mark.parametrize("name", ["lap/top", "..", "a?b#c", "%2F", "- \u00fc"])
def test_a_key_of_before_with_an_odd_name_is_revoked_by_it(name: str) -> None:
    async def work() -> tuple[str, ...]:
        async with door() as opened:
            file = KeyFile(opened.rig.folders.config)
            one = Key("0123abcd", name, frozenset(Permission), digest_of(b"x"), 1.0)
            file._save([one], ())
            sent = request_of(endpoint_ops.REVOKE_KEY, NOTHING, {"id": name})
            answer = await opened.client.request(sent.method, sent.path)
            assert answer.status_code == 200
            return tuple(key.name for key in file.read())

    assert asyncio.run(work()) == ()


@pytest.mark.parametrize("name", ["lap/top", "..", ".", "", " a", "a ", "a\\b", "%2F", "a?b", "#", "a\nb"])
def test_no_key_is_made_with_a_name_that_is_none(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        CreateKey(name=name)


@pytest.mark.parametrize("name", ["laptop", "Anna's laptop", "ci-2.box", "a@b", "\u0430\u043d\u043d\u0430"])
def test_names_of_keys_are_those_of_programs_and_people(name: str) -> None:
    assert CreateKey(name=name).name == name
