"""Routes for view tests, like those that a host sends."""

from engine_host.core.findings.table import finding
from engine_host.protocol.endpoint.routes import (
    Provider,
    Route,
    RouteStatus,
    RouteTargets,
    TargetState,
    TargetStatus,
)

PROVIDER = Provider(url="https://api.example.com/v1", model="large", context=131072, key_variable="A_KEY")


def route(
    name: str,
    targets: RouteTargets,
    state: TargetState = TargetState.RUNS,
    before: RouteTargets | None = None,
) -> RouteStatus:
    """A route whose engines are all in one state; a provider is asked where that is allowed."""
    told = [
        TargetStatus(
            name=engine,
            state=state,
            command="" if state is TargetState.RUNS else f"sndr run {engine}",
        )
        for engine in targets.engines
    ]
    if targets.provider is not None:
        allowed = TargetState.ALLOWED if targets.allow_remote else TargetState.NOT_ALLOWED
        told.append(
            TargetStatus(name=f"{targets.provider.model} at api.example.com", provider=True, state=allowed)
        )
    unknown = (
        finding("route.target_unknown", route=name, target=targets.engines[0], near="", route_word=name)
        if state is TargetState.UNKNOWN
        else None
    )
    return RouteStatus(
        route=Route(id=name, targets=targets, before=before, changed_at=1.0),
        answers=_answers(told),
        targets=tuple(told),
        findings=(unknown,) if unknown is not None else (),
    )


def _answers(told: list[TargetStatus]) -> bool | None:
    states = {target.state for target in told}
    if TargetState.RUNS in states:
        return True
    return None if TargetState.ALLOWED in states else False
