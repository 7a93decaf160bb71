"""The state of a route's targets: can they be asked, and what would make it so."""

import shlex
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from engine_host.core.did_you_mean import near_names
from engine_host.core.errors import HostError
from engine_host.core.findings.table import finding
from engine_host.gateway.directory import Target
from engine_host.gateway.routing.elsewhere import NO_OTHERS, OtherMachines
from engine_host.gateway.routing.provider import address_of, key_of, leaves_machine
from engine_host.gateway.routing.resolution import asks_provider, engines_of, led_to
from engine_host.gateway.routing.seen import Seen
from engine_host.protocol.endpoint.routes import (
    NextProvider,
    Provider,
    Route,
    RouteStatus,
    TargetState,
    TargetStatus,
)
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import Finding
from engine_host.protocol.remote.hosts import HOST_NAME

_MOST_NEAR = 3


@dataclass(frozen=True)
class Known:
    """The engines that run, the names of those that start, and the names of all that could be started.

    `on_demand` tells whether a request starts one, `seen` what became of the last requests to a provider,
    `others` which engines other machines have.
    """

    running: Sequence[Target]
    starting: Collection[str]
    startable: Collection[str]
    on_demand: Callable[[str], bool]
    seen: Callable[[Provider], Seen]
    others: OtherMachines = NO_OTHERS

    @property
    def names(self) -> set[str]:
        """Return every name that an engine has or could have."""
        return {*self.startable, *self.starting, *(target.name for target in self.running)}

    def is_asked_by_name(self, name: str) -> bool:
        """Return True if a request for this name would be for an engine, were there no route."""
        running = {target.name for target in self.running}
        return name in running or name in self.starting or self.on_demand(name)


def status_of(route: Route, known: Known) -> RouteStatus:
    """Return a route with its targets as they are now."""
    targets = [_engine(route, name, known) for name in route.targets.engines]
    targets += [_provider(route, one, known.seen(one.provider)) for one in route.targets.providers]
    return RouteStatus(
        route=route,
        answers=_answers(route, targets),
        targets=tuple(targets),
        findings=tuple(_findings(route, known)),
    )


def _answers(route: Route, targets: Sequence[TargetStatus]) -> bool | None:
    """Return what was seen of who is asked now; None where nothing was."""
    states = [target.state for target in targets if not target.provider]
    if TargetState.RUNS in states:
        return True
    if TargetState.ON_DEMAND in states:
        return None
    asked = [target.state for target in targets if target.provider] if asks_provider(route) else []
    if TargetState.ANSWERED in asked:
        return True
    return None if TargetState.ALLOWED in asked else False


def _engine(route: Route, name: str, known: Known) -> TargetStatus:
    alone = route.targets.model_copy(update={"engines": (name,)})
    running = engines_of(route.model_copy(update={"targets": alone}), known.running, known.others)
    if known.others.means(name):
        return _elsewhere(name, running, known.others)
    if running:
        others = [target.name for target in running if target.name != name]
        detail = tr("as {others}", others=", ".join(others)) if others else ""
        return TargetStatus(name=name, state=TargetState.RUNS, detail=detail)
    command = f"sndr run {shlex.quote(name)}"
    if name in known.starting:
        return TargetStatus(name=name, state=TargetState.STARTING)
    if known.on_demand(name):
        return TargetStatus(name=name, state=TargetState.ON_DEMAND)
    if name in known.startable:
        return TargetStatus(name=name, state=TargetState.NOT_RUNNING, command=command)
    machine = name.partition("/")[0]
    if "/" in name and HOST_NAME.fullmatch(machine):
        # An engine here of that name would take the place of one on the machine that was meant.
        return TargetStatus(
            name=name,
            state=TargetState.UNKNOWN,
            detail=tr("{machine} is no machine that was added", machine=machine),
            command=f"sndr host add {machine} USER@HOST",
        )
    return TargetStatus(
        name=name, state=TargetState.UNKNOWN, command=f"sndr run MODEL --name {shlex.quote(name)}"
    )


def _elsewhere(name: str, running: Sequence[Target], others: OtherMachines) -> TargetStatus:
    if running:
        runs = TargetState.ON_DEMAND if others.on_demand(name) else TargetState.RUNS
        return TargetStatus(name=name, state=runs, detail=tr("on {machine}", machine=running[0].machine))
    state = TargetState.UNKNOWN if others.known(name) is False else TargetState.NOT_RUNNING
    return TargetStatus(name=name, state=state, detail=others.why_not(name), command=others.command(name))


def _provider(route: Route, one: NextProvider, seen: Seen) -> TargetStatus:
    provider = one.provider
    name = f"{provider.model} at {address_of(provider.url).name}"
    where = tr("on another machine") if leaves_machine(provider) else tr("on this machine")
    state, command = TargetState.ALLOWED, ""
    if not one.allow_remote:
        state = TargetState.NOT_ALLOWED
        which = ["--next", "--provider", provider.url, "--model", provider.model]
        further = which if provider != route.targets.provider else []
        command = shlex.join(["sndr", "routes", "set", route.id, *further, "--allow-remote"])
    else:
        try:
            key_of(provider)
        except HostError as error:
            state, seen = TargetState.KEY_MISSING, Seen(failure=error.problem.sentence())
        else:
            if seen.works is not None:
                state = TargetState.ANSWERED if seen.works else TargetState.FAILED
    return TargetStatus(
        name=name,
        provider=True,
        state=state,
        detail=where,
        command=command,
        answered_at=seen.answered_at,
        failed_at=seen.failed_at,
        failure=seen.failure,
    )


def unknown_names(engines: Sequence[str], known: Known) -> dict[str, list[str]]:
    """Return the names that no engine, preset or model here has, each with those that are most like it."""
    names, others = known.names, known.others
    theirs = [target.name for target in others.targets()]
    elsewhere = {
        name: near_names(name, theirs, _MOST_NEAR) or theirs[:_MOST_NEAR]
        for name in engines
        if others.means(name) and others.known(name) is False
    }
    return elsewhere | {
        # HOST/ENGINE with another host is not meant as an engine of this machine.
        name: near_names(
            name, {*theirs, *(one for one in names if "/" in one or "/" not in name)}, _MOST_NEAR
        )
        for name in engines
        if not others.means(name)
        and name not in names
        and not known.on_demand(name)
        and not any(name in target.stands_for for target in known.running)
    }


def refuse_unknown(route_id: str, engines: Sequence[str], known: Known) -> None:
    """Raise HostError(not_found) for the first name that nobody knows here."""
    for name, near in unknown_names(engines, known).items():
        word = shlex.quote(route_id)
        alike = tr(" Alike are: {near}.", near=", ".join(near)) if near else ""
        host, separator, _ = name.partition("/")
        if separator and HOST_NAME.fullmatch(host.lower()) and not known.others.means(name):
            raise HostError(
                Reason.NOT_FOUND,
                tr(
                    "There is no host {host}, and nothing here is called {name}; {route_id} was not "
                    "changed.{alike}",
                    host=repr(host),
                    name=repr(name[:200]),
                    route_id=route_id,
                    alike=alike,
                ),
                cause="A name with a slash is HOST/ENGINE, unless something here has it.",
                fix=Fix(
                    text="See which hosts there are; --anyway leads it there all the same.",
                    command="sndr host list",
                ),
                evidence={"field": "engines", "unknown": name, "near": near, "unknown_host": host},
            )
        raise HostError(
            Reason.NOT_FOUND,
            tr(
                "No engine, preset or model here is called {name}; {route_id} was not changed.{alike}",
                name=repr(name[:200]),
                route_id=route_id,
                alike=alike,
            ),
            cause="A route that leads to nobody answers nothing.",
            fix=Fix(
                text=tr(
                    "Name {near}, or start an engine under that name first; "
                    "--anyway leads it there all the same.",
                    near=near[0],
                )
                if near
                else "Start an engine under that name first; --anyway leads it there all the same.",
                command=f"sndr routes set {word} {shlex.quote(near[0])}" if near else "sndr status",
            ),
            evidence={"field": "engines", "unknown": name, "near": near},
        )


def _findings(route: Route, known: Known) -> list[Finding]:
    word = shlex.quote(route.id)
    found = [
        finding(
            "route.target_unknown", route=route.id, target=name, near=", ".join(near[:1]), route_word=word
        )
        for name, near in unknown_names(route.targets.engines, known).items()
    ]
    if route.id not in route.targets.engines and known.is_asked_by_name(route.id):
        runs = any(one.name == route.id for one in known.running)
        found.append(
            finding(
                "route.hides_engine" if runs else "route.hides_engine/later",
                route=route.id,
                targets=list(led_to(route)),
                route_word=word,
            )
        )
    return found
