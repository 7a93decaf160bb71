"""The options of `sndr routes`: over what a route led to, and half a provider is refused."""

import json
from typing import Any

import pytest
from click.testing import CliRunner

from engine_host.cli.output import clock
from engine_host.cli.root import root
from engine_host.cli.routes.commands import note
from engine_host.cli.routes.options import targets_of
from engine_host.core.errors import HostError
from engine_host.protocol.endpoint.routes import Provider, RouteTargets, TargetState, TargetStatus
from engine_host.protocol.errors import Reason

NOTHING: dict[str, Any] = {
    "engines": (), "url": None, "model": None, "key_variable": None, "key_file": None, "context": None,
    "slots": None, "tools": None, "images": None, "embeddings": None, "allow_remote": None, "fallback": None,
    "no_key": False, "no_engines": False, "no_provider": False, "as_next": False, "no_next": False,
}  # fmt: skip
THERE = Provider(url="https://x/v1", model="m", context=4096, key_variable="A_KEY")
BOTH = RouteTargets(engines=("a",), provider=THERE, allow_remote=True, fallback=True)


def given(**changes: Any) -> dict[str, Any]:
    return NOTHING | changes


def test_a_note_is_made_of_sentences() -> None:
    alone = TargetStatus(name="x", state=TargetState.ANSWERED, detail="on this machine")
    assert note(alone) == "on this machine"
    seen = alone.model_copy(update={"answered_at": 1.0})
    assert note(seen) == f"on this machine. Answered last at {clock(1.0)}."
    why = TargetStatus(
        name="gpu/x", state=TargetState.NOT_RUNNING, detail="gpu is not connected.", command="y"
    )
    assert note(why) == "gpu is not connected. $ y"
    assert note(seen, where=False) == f"Answered last at {clock(1.0)}."


def test_what_is_not_said_stays() -> None:
    assert targets_of(given(), BOTH) == BOTH
    assert targets_of(given(engines=("b",)), BOTH) == BOTH.model_copy(update={"engines": ("b",)})
    assert targets_of(given(allow_remote=False), BOTH) == BOTH.model_copy(update={"allow_remote": False})
    other = targets_of(given(model="n", key_file="/k"), BOTH).provider
    assert other is not None
    assert (other.model, other.key_variable, other.key_file) == ("n", None, "/k")


def test_a_key_goes_to_no_other_address() -> None:
    moved = targets_of(given(url="https://other/v1"), BOTH).provider
    assert moved is not None
    assert (moved.url, moved.key_variable, moved.key_file) == ("https://other/v1", None, None)
    same = targets_of(given(url=THERE.url, model="n"), BOTH).provider
    assert same is not None
    assert same.key_variable == "A_KEY"
    without = targets_of(given(no_key=True), BOTH).provider
    assert without == THERE.model_copy(update={"key_variable": None})
    renewed = targets_of(given(url="https://other/v1", key_file="/k"), BOTH).provider
    assert renewed is not None
    assert (renewed.key_variable, renewed.key_file) == (None, "/k")


@pytest.mark.parametrize(
    "url",
    ["https://other/v1", "https://x:8443/v1", "http://x/v1", "https://x.other/v1", "https://[x", "unix:/x"],
)
def test_consent_goes_to_no_other_address(url: str) -> None:
    assert not targets_of(given(url=url), BOTH).allow_remote
    assert targets_of(given(url=url, allow_remote=True), BOTH).allow_remote


@pytest.mark.parametrize("url", ["https://x/v2", "https://x:443/v1", "https://X/v1"])
def test_consent_is_for_all_of_a_host(url: str) -> None:
    assert targets_of(given(url=url), BOTH).allow_remote


def test_consent_goes_with_its_provider() -> None:
    without = targets_of(given(no_provider=True), BOTH)
    assert not without.allow_remote
    old = without.model_copy(update={"allow_remote": True})
    there = given(url="https://other/v1", model="m", context=4096)
    assert not targets_of(there, old).allow_remote


def test_a_part_is_left_out() -> None:
    without = targets_of(given(no_provider=True), BOTH)
    assert (without.engines, without.provider, without.fallback) == (("a",), None, False)
    without = targets_of(given(no_engines=True), BOTH)
    assert (without.engines, without.provider, without.fallback) == ((), THERE, False)


def test_half_a_provider_is_refused() -> None:
    with pytest.raises(HostError) as refused:
        targets_of(given(url="https://x/v1"), None)
    assert refused.value.reason is Reason.BAD_REQUEST
    assert "--model and --context" in refused.value.problem.message


def test_nowhere_and_a_fallback_for_nothing_are_refused() -> None:
    for where in (given(), given(engines=("a",), fallback=True), given(no_engines=True, no_provider=True)):
        with pytest.raises(HostError) as refused:
            targets_of(where, None)
        assert refused.value.reason is Reason.BAD_REQUEST


@pytest.mark.parametrize("name", ["a/b", "a:b", "\x1b[31m", "a b"])
def test_an_id_is_refused_before_a_host_is_asked(home: object, name: str) -> None:
    done = CliRunner().invoke(root, ["routes", "set", name, "engine", "--json"], standalone_mode=False)
    problem = json.loads(done.output)["error"]
    assert problem["reason"] == "setting_invalid"
    assert problem["fix"]["text"].startswith("Call it ")


def test_a_further_provider_is_added_changed_and_left_out() -> None:
    more = given(as_next=True, url="https://y/v1", model="n", context=512, key_file="/k")
    first = targets_of(more, BOTH)
    assert first.provider == BOTH.provider
    assert [(one.provider.url, one.provider.key_file, one.allow_remote) for one in first.further] == [
        ("https://y/v1", "/k", False)
    ]
    allowed = targets_of(given(as_next=True, url="https://y/v1", model="n", allow_remote=True), first)
    assert [(one.provider.context, one.allow_remote) for one in allowed.further] == [(512, True)]
    assert targets_of(given(engines=("b",)), allowed).further == allowed.further, "what is not said stays"
    assert targets_of(given(no_next=True), allowed).further == ()
    assert targets_of(given(no_provider=True), allowed).further == ()
    for old in (None, RouteTargets(engines=("a",))):
        with pytest.raises(HostError, match="has a provider"):
            targets_of(more, old)
