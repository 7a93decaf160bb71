"""Which routes lead to an engine, by its name or by its preset and model."""

import pytest

from engine_host.operations.staging.leading import would_lead
from engine_host.protocol.endpoint.routes import Route, RouteTargets
from tests.unit.operations.staging.bench import FakePlace, planned


@pytest.mark.parametrize(
    ("target", "leads"), [("new", True), ("qwen", True), ("preset", True), ("old", False), ("x/new", False)]
)
def test_a_route_by_model_or_preset_would_lead_to_what_is_staged(target: str, leads: bool) -> None:
    machine = FakePlace()
    machine.add("old", model="qwen")
    route = Route(id="theirs", targets=RouteTargets(engines=(target,)), changed_at=0)
    assert would_lead(route, planned("new", "qwen", "preset"), machine.known) is leads


def test_an_engine_of_that_very_name_goes_before_the_model() -> None:
    machine = FakePlace()
    machine.add("qwen", model="qwen")
    route = Route(id="theirs", targets=RouteTargets(engines=("qwen",)), changed_at=0)
    assert not would_lead(route, planned("qwen-2", "qwen"), machine.known)
