"""Both clients send an operation as it is defined and read its answer; a made-up one needs nothing else."""

import asyncio
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine_host import __version__
from engine_host.client import failures
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.client.sync import ControlClient
from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.package_data import presets
from engine_host.core.settings import SettingsFile
from engine_host.core.store import Store
from engine_host.operations.performs import functions
from engine_host.operations.presets.catalog import PresetOperations
from engine_host.operations.presets.consents import PresetConsents
from engine_host.operations.presets.own import OwnPresetOperations
from engine_host.protocol.base import Command, Query, Wire
from engine_host.protocol.errors import Action, Reason
from engine_host.protocol.operations import table as ops
from engine_host.protocol.operations.definition import Nothing, Operation
from engine_host.protocol.presets import LintPreset, ResolvePreset, SavePreset
from tests.unit.cli.fake_host import TOKEN, VERSION, FakeHost, fake_host

MINE = "format: 1\nid: mine\ntitle: Mine\nextends: demo-llamacpp\nsettings:\n  context: 4096\n"


class Part(Command):
    """A made-up part of a request."""

    name: str = ""
    off: bool = True
    words: tuple[str, ...] = ()


class Rename(Command):
    """A made-up request."""

    to: str
    new: int | None = None
    more: dict[str, Any] | None = None
    part: "Part | None" = None
    parts: tuple["Part", ...] = ()
    aloud: bool = False


class Aloud(Query):
    """A made-up query."""

    times: int = 1
    softly: bool = False


class Name(Wire):
    """A made-up answer."""

    name: str


RENAME = Operation("things.rename", "PUT", "/v1/things/{id}", Rename, Name, "Rename it.", status=201)
READ = Operation("things.read", "GET", "/v1/things/{id}", Aloud, Name, "Its name.")
FORGET = Operation("things.forget", "DELETE", "/v1/things/{id}", Nothing, Name, "Forget it.")

Call = Callable[[Any], Any]
CALLS: list[tuple[Call, str, Any]] = [
    (lambda client: client.call(RENAME, Rename(to="x"), id="a/b"), "PUT /v1/things/a%2Fb", {"to": "x"}),
    # What nobody said is not sent, but a null among what was said is: it removes a value.
    (
        lambda client: client.call(RENAME, Rename(to="x", more={"a": None, "b": [None]}), id="a/b"),
        "PUT /v1/things/a%2Fb",
        {"to": "x", "more": {"a": None, "b": [None]}},
    ),
    (
        lambda client: client.call(
            RENAME, Rename(to="", part=Part(off=False), parts=(Part(), Part(name="n"))), id="a/b"
        ),
        "PUT /v1/things/a%2Fb",
        {"to": "", "part": {"off": False}, "parts": [{"off": True}, {"name": "n", "off": True}]},
    ),
    (lambda client: client.call(READ, Aloud(times=2, softly=True), id="a"), "times=2&softly=true", None),
    (lambda client: client.call(READ, Aloud(times=1), id="a"), "GET /v1/things/a", None),
    (lambda client: client.call(FORGET, id="a"), "DELETE /v1/things/a", None),
]


def through_sync(host: FakeHost, call: Call) -> Any:
    with ControlClient(host.folders) as client:
        return call(client)


def through_async(host: FakeHost, call: Call) -> Any:
    async def work() -> Any:
        client = AsyncControlClient(str(host.folders.socket), TOKEN, "test")
        try:
            await client.version()
            return await call(client)
        finally:
            await client.close()

    return asyncio.run(work())


both = pytest.mark.parametrize("through", [through_sync, through_async])


@both
@pytest.mark.parametrize(("call", "sent", "body"), CALLS)
def test_a_call_is_sent_as_defined(
    home: Path, through: Callable[[FakeHost, Call], Any], call: Call, sent: str, body: Any
) -> None:
    with fake_host(home) as host:
        for place in ("PUT /v1/things/a%2Fb", "GET /v1/things/a", "DELETE /v1/things/a"):
            host.answers[place] = (200, {"name": "One", "unknown": 1})
        assert through(host, call) == Name(name="One")
        place, headers, said = host.received[-1]
        assert place.endswith(sent)
        assert said == body
        assert ("idempotency-key" in headers) is not place.startswith("GET")


@both
def test_a_refusal_is_its_problem(home: Path, through: Callable[[FakeHost, Call], Any]) -> None:
    problem = {"reason": "conflict", "message": "It is there already.", "fix": {"text": "Rename it."}}
    with fake_host(home) as host:
        host.answers["DELETE /v1/things/a"] = (409, {"error": problem})
        with pytest.raises(HostError, match="there already") as caught:
            through(host, lambda client: client.call(FORGET, id="a"))
    assert caught.value.reason is Reason.CONFLICT
    assert caught.value.problem.fix is not None
    assert not caught.value.lost


UNKNOWN_FIELD = {"field": "new", "type": "extra_forbidden"}


@both
@pytest.mark.parametrize(
    ("program", "status", "reason", "evidence", "served", "told"),
    [
        # It does not serve the path: 0.1, 0.2 and their trees say it as they say that a thing is missing.
        ("sndr 0.1.0", 404, "not_found", {}, False, "unsupported"),
        ("sndr 0.2.0", 404, "not_found", {}, False, "unsupported"),
        ("sndr 0.2.0", 404, "not_found", {}, True, "not_found"),
        ("sndr 0.2.0", 404, "not_found", {"id": "a"}, False, "not_found"),
        ("sndr 0.2.0", 405, "bad_request", {}, True, "unsupported"),
        (__version__, 404, "unsupported", {}, False, "unsupported"),
        (__version__, 405, "unsupported", {}, False, "unsupported"),
        (__version__, 404, "not_found", {}, False, "not_found"),
        ("of somebody", 404, "not_found", {}, False, "not_found"),
        # It does not know a field of the request; one of this very version had a defect.
        ("sndr 0.2.0", 400, "bad_request", UNKNOWN_FIELD, True, "unsupported"),
        ("sndr 99.0", 400, "bad_request", UNKNOWN_FIELD, True, "unsupported"),
        (__version__, 400, "bad_request", UNKNOWN_FIELD, True, "bad_request"),
        ("sndr 0.2.0", 400, "bad_request", {"field": "to", "type": "missing"}, True, "bad_request"),
    ],
)
def test_what_a_host_of_another_version_refuses_is_said_so(
    home: Path,
    through: Callable[[FakeHost, Call], Any],
    program: str,
    status: int,
    reason: str,
    evidence: dict[str, str],
    served: bool,
    told: str,
) -> None:
    refused = {"error": {"reason": reason, "message": "Its own words.", "evidence": evidence}}
    with fake_host(home) as host:
        host.answers["GET /v1/version"] = (200, {**VERSION, "program": program})
        host.answers["DELETE /v1/things/a"] = (status, refused)
        host.answers["OPTIONS /v1/things/a"] = (405 if served else 404, refused)
        with pytest.raises(HostError) as caught:
            through(host, lambda client: client.call(FORGET, id="a"))
    assert caught.value.reason == told
    if told == "unsupported":
        assert "of another version and cannot do this" in caught.value.problem.message
        assert caught.value.problem.cause == "Its own words."
    else:
        assert caught.value.problem.message == "Its own words."


def test_a_host_elsewhere_that_is_older_is_updated_by_its_name() -> None:
    body = b'{"error": {"reason": "unsupported", "message": "There is nothing."}}'
    problem = failures.of_answer(body, 404, "gpu").problem
    assert problem.message.startswith("The engine host on gpu is of another version")
    assert problem.fix is not None
    assert problem.fix.command == "sndr host update gpu"


@both
def test_an_answer_of_another_type_is_told(home: Path, through: Callable[[FakeHost, Call], Any]) -> None:
    with fake_host(home) as host:
        host.answers["DELETE /v1/things/a"] = (200, {"title": "One"})
        with pytest.raises(HostError, match=r"answer to things\.forget could not be read"):
            through(host, lambda client: client.call(FORGET, id="a"))


@both
def test_a_command_that_broke_off_is_sent_once_more_with_its_key(
    home: Path, through: Callable[[FakeHost, Call], Any]
) -> None:
    tries = 0

    def second_time() -> Any:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise ConnectionResetError("the test breaks the connection here")
        return 200, {"name": "One"}

    with fake_host(home) as host:
        host.answers["DELETE /v1/things/a"] = second_time
        assert through(host, lambda client: client.call(FORGET, id="a")).name == "One"
        first, second = host.received[-2:]
        assert first[1]["idempotency-key"] == second[1]["idempotency-key"]


def test_an_action_is_sent_as_it_stands(home: Path) -> None:
    with fake_host(home) as host:
        host.answers["POST /v1/things"] = (200, {})
        for body in ({}, {"name": "x"}):
            action = Action(method="POST", path="/v1/things", body=body)
            through_async(host, functools.partial(AsyncControlClient.send, action=action))
            assert host.received[-1][2] == (body or None)


@pytest.mark.parametrize(
    ("operation", "asked", "preset"),
    [
        (ops.PRESETS, None, None),
        (ops.PRESET, None, "demo-vllm"),
        (ops.PRESET_FILE, None, "demo-vllm"),
        (ops.EXPORT_PRESET, None, "demo-vllm"),
        (ops.CATALOG, None, None),
        (ops.PRESET_FORM, None, None),
        (ops.RESOLVE_PRESET, ResolvePreset(preset="demo-vllm"), None),
        (ops.LINT_PRESET, LintPreset(text=MINE, id="mine"), None),
        (ops.SAVE_PRESET, SavePreset(text=MINE), "mine"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_what_the_real_catalogue_answers_arrives_whole(
    home: Path, tmp_path: Path, operation: Operation[Any, Any], asked: Any, preset: str | None
) -> None:
    services = PresetOperations(
        presets, tmp_path, SettingsFile(tmp_path / "settings.toml"), EventLog(), lambda: ()
    )
    path = {"id": preset} if preset else {}
    given = [*path.values(), *([asked] if asked else [])]
    said = asyncio.run(
        functions(
            (services, OwnPresetOperations(services, PresetConsents(Store(tmp_path / "store.sqlite"))))
        )[operation.name](*given)
    )
    with fake_host(home) as host:
        place = f"{operation.method} {operation.path_for(path)}"
        host.answers[place] = (200, said.model_dump(mode="json"))
        for through in (through_sync, through_async):
            read = through(host, lambda client: client.call(operation, *([asked] if asked else []), **path))
            assert read == said
            assert host.received[-1][0] == place
