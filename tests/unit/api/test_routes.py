"""Each operation has a function that takes what it will be given; a made-up one needs nothing else."""

import asyncio
from urllib.parse import unquote

import httpx
import pytest
from starlette.applications import Starlette

from engine_host.api.answers import on_host_error
from engine_host.api.routes import routes
from engine_host.core.errors import HostError
from engine_host.operations.performs import Later, functions, performs
from engine_host.protocol.base import Command, Query, Wire
from engine_host.protocol.errors import Reason
from engine_host.protocol.operations.definition import Nothing, Operation
from engine_host.protocol.operations.document import document


class Rename(Command):
    """A made-up request."""

    to: str


class Aloud(Query):
    """A made-up query."""

    times: int = 1


class Name(Wire):
    """A made-up answer."""

    name: str


# The recipe of CONTRIBUTING.md: the definition …
RENAME = Operation("things.rename", "PUT", "/v1/things/{id}", Rename, Name, "Rename it.", status=201)
READ = Operation(
    "things.read", "GET", "/v1/things/{id}", Aloud, Name, "Its name.", reasons=(Reason.NOT_FOUND,)
)


# … and the function.
class ThingOperations:
    """Made-up things."""

    def __init__(self) -> None:
        self.names = {"one": "One"}

    @performs(RENAME)
    async def rename(self, thing: str, asked: Rename) -> Name:
        """Rename a thing."""
        self.names[thing] = asked.to
        return Name(name=asked.to)

    @performs(READ)
    def read(self, thing: str, asked: Aloud) -> Name:
        """Return its name. Raises HostError(not_found)."""
        if thing not in self.names:
            raise HostError(Reason.NOT_FOUND, f"There is no {thing}.")
        return Name(name=self.names[thing] * asked.times)


def ask(method: str, path: str, content: str = "") -> httpx.Response:
    """Ask the made-up things."""

    async def work() -> httpx.Response:
        app = Starlette(
            routes=routes((ThingOperations(),), (RENAME, READ)),
            exception_handlers={HostError: on_host_error},
        )
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://host") as client:
            return await client.request(method, path, content=content)

    return asyncio.run(work())


def test_a_new_operation_is_routed_checked_and_documented() -> None:
    done = ask("PUT", "/v1/things/one", '{"to": "Two"}')
    assert (done.status_code, done.json()) == (201, {"name": "Two"})
    assert ask("GET", "/v1/things/one?times=2&unknown=1").json() == {"name": "OneOne"}
    assert ask("GET", "/v1/things/two").json()["error"]["reason"] == "not_found"
    for refused, field in (
        (ask("PUT", "/v1/things/one", '{"ot": "Two"}'), "to"),
        (ask("GET", "/v1/things/one?times=x"), "times"),
    ):
        assert refused.status_code == 400
        assert refused.json()["error"]["evidence"]["field"] == field
    assert "| things.rename | `PUT /v1/things/{id}` | `Rename` | `Name`, 201 | Rename it. |" in document(
        (RENAME,)
    )
    assert "`GET /v1/things/{id}?times=…`" in document((READ,))


def test_an_operation_without_a_function_stops_the_start() -> None:
    other = Operation("things.forget", "DELETE", "/v1/things/{id}", Nothing, Name, "Forget it.")
    with pytest.raises(TypeError, match=r"no function performs things\.forget"):
        routes((ThingOperations(),), (RENAME, READ, other))


def test_two_functions_for_one_operation_stop_the_start() -> None:
    with pytest.raises(TypeError, match=r"two functions perform things\."):
        routes((ThingOperations(), ThingOperations()), (RENAME, READ))


def test_a_service_is_built_once_and_when_it_is_first_asked() -> None:
    built: list[ThingOperations] = []

    def build() -> ThingOperations:
        built.append(ThingOperations())
        return built[-1]

    async def work() -> list[Name]:
        performed = functions((Later((RENAME, READ), build),))
        assert built == []
        asked = (performed["things.read"]("one", Aloud()) for _ in range(3))
        return [*await asyncio.gather(*asked), await performed["things.rename"]("one", Rename(to="Two"))]

    assert [one.name for one in asyncio.run(work())] == ["One", "One", "One", "Two"]
    assert [one.names for one in built] == [{"one": "Two"}]


def test_a_service_that_could_not_be_built_is_built_when_it_is_asked_for_again() -> None:
    tries: list[int] = []

    def build() -> ThingOperations:
        tries.append(1)
        if len(tries) == 1:
            raise ImportError("its file was being replaced")
        return ThingOperations()

    async def work() -> Name:
        read = functions((Later((RENAME, READ), build),))["things.read"]
        with pytest.raises(ImportError, match="being replaced"):
            await read("one", Aloud())
        found: Name = await read("one", Aloud())
        return found

    assert asyncio.run(work()).name == "One"


def test_a_service_that_performs_something_else_than_was_named_is_a_defect() -> None:
    with pytest.raises(TypeError, match=r"things\.read.*were named"):
        Later((READ,), ThingOperations).functions()
    with pytest.raises(TypeError, match=r"two functions perform things\."):
        routes((ThingOperations(), Later((READ,), ThingOperations)), (RENAME, READ))


def test_a_function_that_takes_something_else_stops_the_start() -> None:
    class Wrong:
        @performs(RENAME)
        def rename(self, asked: Rename) -> Name:
            """Forgets which thing."""
            return Name(name=asked.to)

    with pytest.raises(TypeError, match=r"things\.rename gives"):
        routes((Wrong(),), (RENAME,))


def test_the_path_is_spelt_once_a_request_however_many_routes_look_at_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def counted(text: str) -> str:
        asked.append(text)
        return unquote(text)

    monkeypatch.setattr("engine_host.api.routes.unquote", counted)
    assert ask("GET", "/v1/things/one").json() == {"name": "One"}
    assert asked == ["", "v1", "things", "one", "one", "one"], "the path's parts, and the name for each route"
