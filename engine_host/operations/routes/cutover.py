"""The job that moves a route: the new target is named, tried with real requests, and only then led to."""

import secrets
import shlex
from collections.abc import Callable
from typing import Any

from engine_host.core.errors import HostError
from engine_host.core.jobs import JobControl, JobRunner, telling_what_is
from engine_host.gateway.app import Gateway
from engine_host.gateway.directory import Target
from engine_host.gateway.error_answers import EndpointError
from engine_host.gateway.routing.book import RouteBook, check_route
from engine_host.gateway.routing.resolution import led_to
from engine_host.operations.performs import performs
from engine_host.operations.routes.kept import check_new_key_file
from engine_host.operations.routes.trial import Trial, carry_out
from engine_host.protocol.endpoint.routes import CutOver, Route, RouteCheck, RouteTargets
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.jobs import Job, JobKind
from engine_host.protocol.language import tr
from engine_host.protocol.operations import endpoint as endpoint_ops


class CutOverOperations:
    """Moves routes, one change of a route at a time."""

    def __init__(
        self, book: RouteBook, gateway: Gateway, jobs: JobRunner, changed: Callable[[], None]
    ) -> None:
        """`changed` is told when a route leads elsewhere."""
        self._book = book
        self._gateway = gateway
        self._jobs = jobs
        self._changed = changed

    @performs(endpoint_ops.CUT_OVER)
    async def start(self, route_id: str, asked: RouteTargets) -> Job:
        """Move a route as a job whose result is a CutOver.

        Raises HostError: not_found, setting_invalid for an address, conflict where it leads there already.
        """
        route = self._book.get(route_id)
        check_route(route_id, asked)
        check_new_key_file(asked, route.targets)
        if asked == route.targets:
            raise HostError(
                Reason.CONFLICT,
                tr("{route_id} leads there already.", route_id=route_id),
                cause="A cut-over moves a route, and this one is where it was to be moved to.",
                fix=Fix(text="Name where it is to lead.", command=f"sndr routes cutover {route_id} ENGINE"),
            )
        words = " ".join(map(shlex.quote, asked.engines))
        return self._jobs.start(
            JobKind.ROUTE_CUTOVER,
            tr(
                "Lead {route_id} to {led_to}",
                route_id=route_id,
                led_to=" and ".join(led_to(_with(route, asked))),
            ),
            f"route {route_id}",
            f"sndr routes cutover {shlex.quote(route_id)} {words}".rstrip(),
            lambda control: telling_what_is(control, self._carry_out(control, route, asked)),
        )

    async def _carry_out(self, control: JobControl, route: Route, asked: RouteTargets) -> dict[str, Any]:
        return (await self.move(control, route, asked)).model_dump(mode="json")

    def requests(self, route_id: str, asked: RouteTargets) -> tuple[str, ...]:
        """Return what a new target will be asked, by name. Raises HostError where it cannot be asked."""
        found: list[str] = []
        route = _as_new(route_id, asked)
        for part in _parts(asked):
            name = f"{route_id}.trial-{secrets.token_hex(4)}"
            self._book.attempt(name, part)
            try:
                trial = Trial(self._gateway.trusted_app, self._staged(route, name), name)
                found += [what for what, _ in trial.checks() if what not in found]
            finally:
                self._book.end_attempt(name)
        return tuple(found)

    async def move(
        self, control: JobControl, route: Route, asked: RouteTargets, *, more: int = 0, is_new: bool = False
    ) -> CutOver:
        """Try a new target and lead the route there, as steps of a job, which has `more` after these.

        `is_new`: there is no such route yet. Raises HostError; the route then leads where it led.
        """
        control.undone = tr("{route} was not changed.", route=route.id)
        checks: list[RouteCheck] = []
        parts, last = _parts(asked), steps_of(asked)
        names = [f"{route.id}.trial-{secrets.token_hex(4)}" for _ in parts]
        try:
            control.step(1, last + more, tr("stage"), " and ".join(led_to(_with(route, asked))))
            for name, part in zip(names, parts, strict=True):
                self._book.attempt(name, part)
            staged = [self._staged(route, name) for name in names]
            for number, (name, target) in enumerate(zip(names, staged, strict=True), start=2):
                trial = Trial(self._gateway.trusted_app, target, name)
                for place, (what, check) in enumerate(wanted := trial.checks()):
                    told = tr("{engine_name}: {what}", engine_name=target.engine_name, what=what)
                    control.step(number, last + more, tr("verify"), told, place / len(wanted))
                    checks.append(await carry_out(target.engine_name, what, check))
                    if not checks[-1].passed:
                        raise _failed(route, target, name, checks)
        finally:
            for name in names:
                self._book.end_attempt(name)
        control.step(last, last + more, tr("flip"))
        if self._book.saved.get(route.id) != (None if is_new else route):
            raise HostError(
                Reason.CONFLICT,
                tr("{route} was changed while the new target was tried.", route=route.id),
                cause="Another command or window set or removed it meanwhile.",
                fix=Fix(text="Look at it, and begin again.", command="sndr routes list"),
            )
        moved = self._book.put(route.id, asked)
        control.undone = ""
        self._changed()
        return CutOver(route=moved, checks=tuple(checks))

    def _staged(self, route: Route, trial_id: str) -> Target:
        try:
            return self._gateway.target_of(trial_id)
        except EndpointError as error:
            if error.reason is Reason.REMOTE_NOT_ALLOWED:
                # The route itself may lead to another provider, which is not what is to be allowed.
                raise HostError(
                    error.reason,
                    tr(
                        "The new target of {route} is a provider, and requests may not leave this "
                        "machine for it.",
                        route=route.id,
                    ),
                    cause="What was allowed for another address is not allowed for this one.",
                    fix="Give the cut-over --allow-remote too; in the window, tick that they may leave.",
                    evidence={"code": error.code},
                ) from error
            message = error.message.replace(trial_id, route.id)
            raise HostError(
                error.reason,
                tr("The new target of {route} cannot be asked.", route=route.id),
                cause=message,
                fix="Make it answer first; the route leads where it led.",
                evidence={"code": error.code},
            ) from error


def steps_of(asked: RouteTargets) -> int:
    """Return how many steps moving a route there takes."""
    return len(_parts(asked)) + 2


def _parts(asked: RouteTargets) -> list[RouteTargets]:
    """Each target of a route by itself: all that may be asked later is tried now."""
    parts = [RouteTargets(engines=(name,)) for name in asked.engines]
    if asked.fallback or not parts:
        parts += [
            RouteTargets(provider=one.provider, allow_remote=one.allow_remote) for one in asked.providers
        ]
    return parts


def _failed(route: Route, target: Target, trial_id: str, checks: list[RouteCheck]) -> HostError:
    """The error of a target that did not answer the last of these requests."""
    last = checks[-1]
    there = f"--host {target.machine} " if target.machine else ""
    look = Fix(
        text="See the target's log, mend it, and begin again.",
        command=f"sndr {there}logs {shlex.quote(target.engine_name)}",
    )
    return HostError(
        Reason.VERIFICATION_FAILED,
        tr(
            "{engine_name} did not answer the request “{last}”: {detail}",
            engine_name=target.engine_name,
            last=last.name,
            detail=last.detail.replace(trial_id, route.id),
        ),
        fix=look
        if target.provider is None or target.machine
        else "See what the provider says, mend it, and begin again.",
        evidence={"failed": last.name, "checks": [one.model_dump(mode="json") for one in checks]},
    )


def _as_new(route_id: str, asked: RouteTargets) -> Route:
    return Route(id=route_id, targets=asked, changed_at=0.0)


def _with(route: Route, targets: RouteTargets) -> Route:
    return route.model_copy(update={"targets": targets})
