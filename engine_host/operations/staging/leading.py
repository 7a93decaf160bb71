"""Tells which engines the targets of routes mean, here and elsewhere, and which routes lead to an engine."""

from collections.abc import Iterable, Sequence

from engine_host.operations.staging.places import Places, alive
from engine_host.protocol.endpoint.routes import Route
from engine_host.protocol.engines import Engine
from engine_host.protocol.launch.plans import LaunchPlan
from engine_host.protocol.remote.host_command import for_host
from engine_host.protocol.remote.staging import TargetEngine


async def running_targets(places: Places, target: str) -> list[Engine]:
    """Return the engines that a route's target means now; none where none of them runs.

    Raises HostError where its machine does not answer, or has no engine host of ours.
    """
    machine = places.machine_of(target)
    engines = alive(await places.of(machine).engines())
    return _meant(engines, _name(target, machine), by_name=bool(machine))


def as_target(places: Places, target: str, engine: Engine) -> TargetEngine:
    """Return an engine as what a route leads to by this target."""
    machine = places.machine_of(target)
    command = for_host(engine.plan.command, machine)
    return TargetEngine(target=target, machine=machine, id=engine.id, name=engine.name, command=command)


async def routes_to(places: Places, one: TargetEngine, routes: Iterable[Route]) -> tuple[str, ...]:
    """Return which of these routes lead to an engine, and which of its own machine do.

    They are read after that machine was asked, and nothing is awaited then. Raises HostError where it does
    not answer.
    """
    place = places.of(one.machine)
    theirs = await place.routes()
    engines = alive(await place.engines())
    found = [
        route.id
        for route in routes
        if any(
            places.machine_of(target) == one.machine
            and _is_among(one, _meant(engines, _name(target, one.machine), by_name=bool(one.machine)))
            for target in route.targets.engines
        )
    ]
    found += [
        f"{route.id} on {one.machine}"
        for route in theirs
        if any(_is_among(one, _meant(engines, target)) for target in route.targets.engines)
    ]
    return tuple(found)


def would_lead(route: Route, plan: LaunchPlan, engines: Sequence[Engine]) -> bool:
    """Return True if a route of a machine would lead to what a plan starts there, beside these engines."""
    names = {one.name for one in engines}
    return any(
        target == plan.name or (target in (plan.preset, plan.model) and target not in names)
        for target in route.targets.engines
    )


def _meant(engines: Sequence[Engine], name: str, *, by_name: bool = False) -> list[Engine]:
    """Return those of a name, and only where none has it those of a preset or model: as requests are led.

    `by_name`: one of another machine goes by its name alone.
    """
    own = [one for one in engines if one.name == name]
    return own if own or by_name else [one for one in engines if name in (one.plan.preset, one.plan.model)]


def _name(target: str, machine: str) -> str:
    return target.partition("/")[2] if machine else target


def _is_among(one: TargetEngine, engines: Sequence[Engine]) -> bool:
    return any(engine.id == one.id for engine in engines)
