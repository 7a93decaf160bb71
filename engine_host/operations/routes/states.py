"""The state of a route's targets: can they be asked, and what would make it so."""

import shlex
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from engine_host.core.did_you_mean import near_names
from engine_host.core.errors import HostError
from engine_host.core.findings.table import finding
from engine_host.gateway.directory import Target
from engine_host.gateway.routing.provider import address_of, key_of, leaves_machine
from engine_host.gateway.routing.resolution import asks_provider, engines_of, led_to
from engine_host.protocol.plans import Finding
from engine_host.protocol.routes import Provider, Route, RouteStatus, TargetState, TargetStatus


@dataclass(frozen=True)
class Known:
    """The engines that run, the names of those that start, and the names of all that could be started.

    `on_demand` tells whether a request starts one.
    """

    running: Sequence[Target]
    starting: Collection[str]
    startable: Collection[str]
    on_demand: Callable[[str], bool]


def status_of(route: Route, known: Known) -> RouteStatus:
    """Return a route with its targets as they are now."""
    targets = [_engine(route, name, known) for name in route.targets.engines]
    if route.targets.provider is not None:
        targets.append(_provider(route, route.targets.provider))
    running = any(target.state in (TargetState.RUNS, TargetState.ON_DEMAND) for target in targets)
    asked = asks_provider(route) and targets[-1].state is TargetState.ALLOWED
    return RouteStatus(
        route=route, answers=running or asked, targets=tuple(targets), findings=tuple(_findings(route, known))
    )


def _engine(route: Route, name: str, known: Known) -> TargetStatus:
    alone = route.targets.model_copy(update={"engines": (name,)})
    running = engines_of(route.model_copy(update={"targets": alone}), known.running)
    if running:
        others = [target.name for target in running if target.name != name]
        detail = f"as {', '.join(others)}" if others else ""
        return TargetStatus(name=name, state=TargetState.RUNS, detail=detail)
    command = f"sndr run {shlex.quote(name)}"
    if name in known.starting:
        return TargetStatus(name=name, state=TargetState.STARTING)
    if known.on_demand(name):
        return TargetStatus(name=name, state=TargetState.ON_DEMAND)
    if name in known.startable:
        return TargetStatus(name=name, state=TargetState.NOT_RUNNING, command=command)
    return TargetStatus(
        name=name, state=TargetState.UNKNOWN, command=f"sndr run MODEL --name {shlex.quote(name)}"
    )


def _provider(route: Route, provider: Provider) -> TargetStatus:
    name = f"{provider.model} at {address_of(provider.url).name}"
    where = "on another machine" if leaves_machine(provider) else "on this machine"
    state, detail, command = TargetState.ALLOWED, where, ""
    if not route.targets.allow_remote:
        state = TargetState.NOT_ALLOWED
        command = f"sndr routes set {shlex.quote(route.id)} --allow-remote"
    else:
        try:
            key_of(provider)
        except HostError as error:
            state, detail = TargetState.KEY_MISSING, error.problem.sentence()
    return TargetStatus(name=name, provider=True, state=state, detail=detail, command=command)


def _findings(route: Route, known: Known) -> list[Finding]:
    names = {*known.startable, *known.starting, *(target.name for target in known.running)}
    word = shlex.quote(route.id)
    found = []
    for name in route.targets.engines:
        if (
            name not in names
            and not known.on_demand(name)
            and not any(name in target.stands_for for target in known.running)
        ):
            near = ", ".join(near_names(name, names))
            found.append(
                finding("route.target_unknown", route=route.id, target=name, near=near, route_word=word)
            )
    if route.id not in route.targets.engines and any(one.name == route.id for one in known.running):
        found.append(
            finding("route.hides_engine", route=route.id, targets=list(led_to(route)), route_word=word)
        )
    return found
