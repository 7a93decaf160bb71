"""From a model id to who answers: a route before an engine, the least busy first, a conversation stays."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine_host.core.store import Store
from engine_host.gateway.directory import Target
from engine_host.gateway.error_answers import EndpointError, Form
from engine_host.gateway.routing.book import RouteBook
from engine_host.gateway.routing.resolution import Resolution
from engine_host.protocol.endpoint.routes import NextProvider, Provider, RouteTargets

PROVIDER = Provider(url="https://api.example.com/v1", model="large", context=4096)


def engine(name: str, **more: object) -> Target:
    return Target(f"engine-{name}", name, 2, 4096, 1.0, socket=f"/{name}", **more)  # type: ignore[arg-type]


@dataclass
class Place:
    """Engines, how busy each is, and routes."""

    routes: RouteBook
    running: list[Target] = field(default_factory=list)
    loading: tuple[str, ...] = ()
    busy: dict[str, float] = field(default_factory=dict)

    def targets(self) -> list[Target]:
        return self.running

    def starting(self) -> tuple[str, ...]:
        return self.loading

    def answer(self, name: str | None, conversation: str = "", form: Form = Form.OPENAI) -> Target:
        made = Resolution(self, self.routes, lambda target: self.busy.get(target.name, 0.0))
        return made.available(made.resolve(name, form), conversation, form)[0]

    def refused(self, name: str) -> EndpointError:
        with pytest.raises(EndpointError) as refused:
            self.answer(name)
        return refused.value


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """Engines a and b, no route."""
    store = Store(tmp_path / "host.db")
    yield Place(RouteBook(store), [engine("a"), engine("b")])
    store.close()


def test_an_alias_has_its_own_id_and_the_engines_facts(place: Place) -> None:
    place.routes.put("coder", RouteTargets(engines=("b",)))
    found = place.answer("coder")
    assert (found.name, found.engine_name, found.engine, found.route) == ("coder", "b", "engine-b", ("b",))
    assert place.answer("b").name == "b"
    assert place.answer("coder:latest", form=Form.OLLAMA).name == "coder"


def test_a_route_goes_before_an_engine_of_its_name(place: Place) -> None:
    place.routes.put("a", RouteTargets(engines=("b",)))
    assert place.answer("a").engine == "engine-b"


def test_an_engine_is_meant_by_its_preset_or_model_too(place: Place) -> None:
    place.running = [engine("one", stands_for=("qwen",)), engine("two", stands_for=("qwen",)), engine("qwen")]
    place.routes.put("r", RouteTargets(engines=("qwen",)))
    assert place.answer("r").engine == "engine-qwen", "its own name comes first"
    place.running.pop()
    place.busy = {"one": 1.0}
    assert place.answer("r").engine == "engine-two"
    with pytest.raises(EndpointError):
        place.answer("qwen")


def test_the_least_busy_answers_and_a_conversation_stays(place: Place) -> None:
    place.routes.put("both", RouteTargets(engines=("a", "b")))
    made = Resolution(place, place.routes, lambda target: place.busy.get(target.name, 0.0))

    def answer(conversation: str = "") -> str:
        return made.available(made.resolve("both"), conversation)[0].engine_name

    assert answer("talk") == "a"
    place.busy = {"a": 2.0}
    assert answer() == "b"
    assert answer("talk") == "a", "its beginning is in that engine's cache"
    assert answer("other") == "b"
    place.running = [engine("b")]
    assert answer("talk") == "b"


def test_nothing_takes_the_place_of_what_does_not_run(place: Place) -> None:
    place.routes.put("r", RouteTargets(engines=("gone",), provider=PROVIDER, allow_remote=True))
    fault = place.refused("r")
    assert (fault.status, fault.code) == (503, "route_target_not_running")
    assert "sndr run gone" in fault.message
    place.loading = ("gone",)
    assert place.refused("r").code == "engine_not_ready"
    place.running = []
    place.loading = ()
    assert place.refused("r").code == "route_target_not_running"


def test_a_provider_is_asked_only_where_that_is_allowed(place: Place) -> None:
    place.routes.put("out", RouteTargets(provider=PROVIDER))
    fault = place.refused("out")
    assert (fault.status, fault.code) == (403, "remote_not_allowed")
    assert "sndr routes set out --allow-remote" in fault.message
    place.routes.put("out", RouteTargets(provider=PROVIDER, allow_remote=True))
    found = place.answer("out")
    assert (found.name, found.engine_name, found.provider) == ("out", "large", "api.example.com")


def test_a_fallback_is_asked_while_no_engine_runs(place: Place) -> None:
    targets = RouteTargets(engines=("a",), provider=PROVIDER, allow_remote=True, fallback=True)
    place.routes.put("r", targets)
    assert place.answer("r").provider is None
    place.running = []
    assert place.answer("r").provider == "api.example.com"
    place.routes.put("r", targets.model_copy(update={"allow_remote": False}))
    assert place.refused("r").code == "remote_not_allowed"


def test_a_missing_key_is_said_before_anything_leaves(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SNDR_TEST_KEY", raising=False)
    keyed = PROVIDER.model_copy(update={"key_variable": "SNDR_TEST_KEY"})
    place.routes.put("out", RouteTargets(provider=keyed, allow_remote=True))
    fault = place.refused("out")
    assert (fault.status, fault.code) == (503, "provider_key_missing")
    assert "SNDR_TEST_KEY" in fault.message
    monkeypatch.setenv("SNDR_TEST_KEY", "sk-1")
    assert place.answer("out").key == "sk-1"


def test_lists_show_what_can_be_asked_by_its_id(place: Place) -> None:
    place.routes.put("a", RouteTargets(engines=("b",)))
    place.routes.put("gone", RouteTargets(engines=("c",)))
    place.routes.put("out", RouteTargets(provider=PROVIDER, allow_remote=True))
    place.routes.put("closed", RouteTargets(provider=PROVIDER))
    listed = Resolution(place, place.routes, lambda _: 0.0).listed()
    assert sorted((one.name, one.engine_name) for one in listed) == [("a", "b"), ("b", "b"), ("out", "large")]


def test_routes_to_what_a_request_loads_are_listed(place: Place) -> None:
    place.routes.put("r", RouteTargets(engines=("gone", "c")))
    place.routes.put("here", RouteTargets(engines=("a", "c")))
    made = Resolution(place, place.routes, lambda _: 0.0)
    loadable = made.loadable([engine("c", state="unloaded")])
    assert [(one.name, one.engine_name, one.state) for one in loadable] == [
        ("c", "c", "unloaded"),
        ("r", "c", "unloaded"),
    ]


OTHER = Provider(url="https://other.example.com/v1", model="small", context=8192)


def leads_out(place: Place, first: bool, second: bool) -> None:
    """Lead `out` to two providers, each allowed or not."""
    further = (NextProvider(provider=OTHER, allow_remote=second),)
    place.routes.put("out", RouteTargets(provider=PROVIDER, allow_remote=first, further=further))


def names(place: Place, may_leave: bool | None = None) -> list[str]:
    made = Resolution(place, place.routes, lambda _: 0.0)
    return [one.engine_name for one in made.available(made.resolve("out"), may_leave=may_leave)]


@pytest.mark.parametrize(
    ("first", "second", "may_leave", "asked"),
    [
        (True, True, None, ["large", "small"]),
        (True, False, None, ["large"]),
        (False, True, None, ["small"]),
        (False, False, True, ["large", "small"]),
        (True, True, True, ["large", "small"]),
    ],
)
def test_providers_are_asked_in_order_each_with_its_own_permission(
    place: Place, first: bool, second: bool, may_leave: bool | None, asked: list[str]
) -> None:
    leads_out(place, first, second)
    assert names(place, may_leave) == asked


@pytest.mark.parametrize(("first", "may_leave"), [(False, None), (True, False)])
def test_nobody_is_asked_without_a_permission(place: Place, first: bool, may_leave: bool | None) -> None:
    leads_out(place, first, first)
    with pytest.raises(EndpointError) as refused:
        names(place, may_leave)
    assert refused.value.code == "remote_not_allowed"
    assert "X-SNDR-Allow-Remote" in refused.value.message


def test_each_provider_has_slots_of_its_own(place: Place) -> None:
    leads_out(place, True, True)
    made = Resolution(place, place.routes, lambda _: 0.0)
    assert [one.engine for one in made.available(made.resolve("out"))] == ["route:out", "route:out#2"]


def test_a_provider_without_its_key_is_left_out_while_another_has_one(place: Place) -> None:
    keyed = PROVIDER.model_copy(update={"key_variable": "SNDR_NO_SUCH_VARIABLE"})
    further = (NextProvider(provider=OTHER, allow_remote=True),)
    place.routes.put("out", RouteTargets(provider=keyed, allow_remote=True, further=further))
    assert names(place) == ["small"]


def test_a_model_of_this_machine_that_does_not_run_is_told_apart_from_an_unknown_one(place: Place) -> None:
    place.running = [engine("a"), engine("one", stands_for=("qwen",))]
    made = Resolution(place, place.routes, lambda _: 0.0, installed={"llama", "qwen", "a"}.__contains__)

    def refused(name: str) -> EndpointError:
        with pytest.raises(EndpointError) as raised:
            made.available(made.resolve(name))
        return raised.value

    assert made.available(made.resolve("a"))[0].engine == "engine-a"
    idle = refused("llama")
    assert (idle.status, idle.code) == (404, "model_not_loaded")
    assert "sndr run llama." in idle.message
    assert "sndr on-demand add llama" in idle.message
    assert "runs here as one" in refused("qwen").message
    assert "sndr routes set qwen one" in refused("qwen").message
    assert refused("nobody").code == "model_not_found"


def test_a_request_without_a_model_is_told_which_run(place: Place) -> None:
    place.running = [engine("b"), engine("a")]
    made = Resolution(place, place.routes, lambda _: 0.0)
    with pytest.raises(EndpointError) as refused:
        made.available(made.resolve(None))
    assert (refused.value.param, "a, b" in refused.value.message) == ("model", True)
