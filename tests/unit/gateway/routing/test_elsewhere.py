"""Routes to engines of other machines: meant by name alone, and never replaced by an engine here."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from engine_host.client.failures import of_openai
from engine_host.core.store import Store
from engine_host.gateway.directory import Target
from engine_host.gateway.error_answers import EndpointError
from engine_host.gateway.routing.book import RouteBook
from engine_host.gateway.routing.elsewhere import OtherMachines, ended, silent, unreachable
from engine_host.gateway.routing.failures import provider_refusal
from engine_host.gateway.routing.resolution import Resolution
from engine_host.protocol.endpoint.routes import RouteTargets
from engine_host.protocol.errors import Reason

HERE = Target("engine-1", "gpu/qwen3", 2, 4096, 1.0, socket="/here")
THERE = Target(
    "host:gpu/qwen3", "gpu/qwen3", 64, 4096, 1.0,
    socket="/there", key="t", known_as="qwen3", provider="gpu", machine="gpu", prefix="/openai",
)  # fmt: skip


@dataclass
class Place:
    """Engines here and on the machine gpu."""

    routes: RouteBook
    here: list[Target] = field(default_factory=lambda: [HERE])
    there: list[Target] = field(default_factory=lambda: [THERE])

    def targets(self) -> list[Target]:
        return self.here

    def starting(self) -> tuple[str, ...]:
        return ()

    def resolution(self) -> Resolution:
        others = OtherMachines(
            lambda: self.there,
            lambda name: name.startswith("gpu/"),
            why_not=lambda name: f"{name}: no.",
            command=lambda name: f"sndr --host gpu run {name.partition('/')[2]}",
        )
        return Resolution(self, self.routes, lambda _: 0.0, others)

    def answer(self, may_leave: bool | None = None) -> Target:
        made = self.resolution()
        return made.available(made.resolve("coder"), may_leave=may_leave)[0]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    store = Store(tmp_path / "host.db")
    found = Place(RouteBook(store))
    found.routes.put("coder", RouteTargets(engines=("gpu/qwen3",)))
    yield found
    store.close()


def test_the_engine_there_answers_under_the_routes_id(place: Place) -> None:
    found = place.answer()
    assert (found.name, found.engine_name, found.socket, found.machine) == ("coder", "qwen3", "/there", "gpu")
    assert [target.name for target in place.resolution().listed()] == ["coder", "gpu/qwen3"]


def test_an_engine_here_of_that_name_does_not_take_its_place(place: Place) -> None:
    place.there = []
    with pytest.raises(EndpointError) as refused:
        place.answer()
    assert (refused.value.status, refused.value.code) == (503, "route_target_not_running")
    assert refused.value.message == "coder: gpu/qwen3: no. Try: sndr --host gpu run qwen3"


def test_of_an_engine_there_and_one_here_each_has_its_own_command(place: Place) -> None:
    place.here, place.there = [], []
    place.routes.put("coder", RouteTargets(engines=("gpu/qwen3", "small")))
    with pytest.raises(EndpointError) as refused:
        place.answer()
    assert "sndr run small gpu/qwen3: no. Try: sndr --host gpu run qwen3" in refused.value.message
    assert "sndr run gpu/qwen3" not in refused.value.message


def test_a_request_that_may_not_leave_stays(place: Place) -> None:
    with pytest.raises(EndpointError) as refused:
        place.answer(may_leave=False)
    assert refused.value.code == "remote_not_allowed"
    assert "another machine" in refused.value.message
    place.routes.put("coder", RouteTargets(engines=("gpu/qwen3", "small")))
    place.here = [replace(HERE, name="small")]
    assert place.answer(may_leave=False).socket == "/here"


def test_the_token_of_a_machine_is_not_shown() -> None:
    assert "key" not in repr(THERE)


def test_a_machine_that_says_that_no_engine_runs_is_told_with_the_command_for_it() -> None:
    said = (
        b'{"error": {"code": "no_engine_runs", "message": "No engine runs. Start one with: sndr run MODEL"}}'
    )
    refused = provider_refusal(replace(THERE, name="coder"), 503, said)
    assert str(refused) == "No engine runs on gpu now. Try: sndr --host gpu run qwen3"
    told = of_openai(refused.body()["error"], refused.status)
    assert (told.reason, refused.code) == (Reason.NO_ENGINE_RUNS, "route_target_not_running")


@pytest.mark.parametrize("fault", [unreachable, ended, silent])
def test_what_a_fault_advises_names_the_machine(fault: Callable[[Target], EndpointError]) -> None:
    assert str(fault(THERE)).endswith("sndr host connect gpu")
