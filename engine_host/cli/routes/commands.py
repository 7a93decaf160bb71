"""The commands of `sndr routes`."""

from typing import Any

import click

from engine_host.cli.output import Exit, Output, clock, command
from engine_host.cli.routes.options import targets_of, where_it_leads
from engine_host.cli.start.host import find_or_start
from engine_host.cli.text.job_progress import begin
from engine_host.cli.text.tables import table
from engine_host.cli.text.whole_help import WholeHelp
from engine_host.client.sync import ControlClient
from engine_host.core.errors import HostError
from engine_host.core.outside.model_ids import check_id
from engine_host.protocol.endpoint.routes import (
    CutOver,
    RoutePage,
    RouteStatus,
    RouteTargets,
    SetRoute,
    TargetState,
    TargetStatus,
)
from engine_host.protocol.errors import Reason
from engine_host.protocol.operations import endpoint as endpoint_ops

_WORDS = {
    TargetState.RUNS: "runs",
    TargetState.ALLOWED: "not asked yet",
    TargetState.ANSWERED: "answered",
    TargetState.FAILED: "failed",
    TargetState.ON_DEMAND: "loaded when asked",
    TargetState.STARTING: "starts",
    TargetState.NOT_RUNNING: "does not run",
    TargetState.UNKNOWN: "unknown here",
    TargetState.NOT_ALLOWED: "may not be asked",
    TargetState.KEY_MISSING: "no key",
}


@click.group(cls=WholeHelp)
def routes() -> None:
    """Say what public model ids stand for: engines here by other names, or a provider elsewhere."""


@routes.command("list")
@command("sndr routes list")
def show(out: Output) -> Exit | None:
    """Print the routes, what each leads to, and the state of that."""
    with find_or_start() as hold:
        page = hold.client.call(endpoint_ops.ROUTES)
    out.result(page, _lines(page))
    return None


@routes.command("set")
@click.argument("route")
@where_it_leads
@click.option("--anyway", is_flag=True, help="Also to a name that nothing here has.")
@command("sndr routes set coder qwen3-8b", "sndr routes set coder gpu/qwen3-8b")
def put(out: Output, route: str, where: dict[str, Any], anyway: bool) -> Exit | None:
    """Lead requests for ROUTE to ENGINE, the name of an engine, a preset or a model, or to a provider.

    Several engines share the requests. What is not said stays as it was. A provider is asked only with
    --allow-remote; where engines are named, only with --fallback and while none of them runs.
    """
    check_id(route)
    with find_or_start() as hold:
        wanted = targets_of(where, _old(hold.client, route))
        status = hold.client.call(endpoint_ops.SET_ROUTE, SetRoute.of(wanted, anyway=anyway), id=route)
    out.result(status, _told(status))
    return None


@routes.command("remove")
@click.argument("route")
@command("sndr routes remove coder")
def remove(out: Output, route: str) -> Exit | None:
    """Forget ROUTE; the next request for it is for an engine of that name."""
    with find_or_start() as hold:
        page = hold.client.call(endpoint_ops.REMOVE_ROUTE, id=route)
    out.result(page, [f"{route} is no route any more.", *_lines(page)])
    return None


@routes.command("cutover")
@click.argument("route")
@where_it_leads
@command("sndr routes cutover coder qwen3-new")
def cut_over(out: Output, route: str, where: dict[str, Any]) -> Exit | None:
    """Lead ROUTE to ENGINE after real requests were answered there; else nothing is changed.

    The requests are a list of models, a chat, a stream, a call of a tool, a long prompt, and three at once,
    as far as the model can.
    """
    check_id(route)
    with find_or_start() as hold:
        old = hold.client.call(endpoint_ops.ROUTE, id=route).route.targets
        wanted = targets_of(where, old)
        ended = begin(hold.client, lambda: hold.client.call(endpoint_ops.CUT_OVER, wanted, id=route), out)
    moved = CutOver.model_validate(ended.result)
    rows = [(one.target, one.name, f"{one.seconds:.1f} s", one.detail) for one in moved.checks]
    lines = [*table(("target", "request", "took", "evidence"), rows), "", f"{route} leads there now."]
    lines.append(f"Back with one command: sndr routes back {route}")
    left = [one for one in old.engines if one not in wanted.engines and "/" not in one]
    lines += [
        f"Answers at work there go on; let them end, and stop it: sndr stop {one} --wait 600" for one in left
    ]
    out.result(moved, lines)
    return None


@routes.command("back")
@click.argument("route")
@command("sndr routes back coder")
def back(out: Output, route: str) -> Exit | None:
    """Lead ROUTE where it led before its last change; once more takes that back."""
    with find_or_start() as hold:
        status = hold.client.call(endpoint_ops.ROUTE_BACK, id=route)
    out.result(status, _told(status))
    return None


def _old(client: ControlClient, route: str) -> RouteTargets | None:
    try:
        return client.call(endpoint_ops.ROUTE, id=route).route.targets
    except HostError as error:
        if error.reason is not Reason.NOT_FOUND:
            raise
    return None


def _lines(page: RoutePage) -> list[str]:
    if not page.routes:
        return ["No route: models are asked by their own names. Make one with: sndr routes set ID ENGINE"]
    rows = [
        (status.route.id if not number else "", target.name, _WORDS[target.state], note(target))
        for status in page.routes
        for number, target in enumerate(status.targets)
    ]
    lines = table(("route", "leads to", "state", "note"), rows)
    return lines + [f"{one.severity}: {one.message}" for status in page.routes for one in status.findings]


def _told(status: RouteStatus) -> list[str]:
    route = status.route
    lines = [f"{route.id} leads to {' and '.join(target.name for target in status.targets)}."]
    for target in status.targets:
        where = f" ({target.detail.removesuffix('.')})" if target.detail else ""
        words = note(target, where=False)
        lines.append(f"  {target.name}{where}: {_WORDS[target.state]}. {words}".rstrip())
    lines += [f"{one.severity}: {one.message}" for one in status.findings]
    if route.before is not None:
        lines.append(f"Where it led before: sndr routes back {route.id}")
    return lines


def note(target: TargetStatus, *, where: bool = True) -> str:
    """Return what there is to know of a target, in sentences; where it is alone is a few words."""
    parts = [f"$ {target.command}"] if target.command else []
    if target.answered_at is not None:
        parts.append(f"Answered last at {clock(target.answered_at)}.")
    if target.failed_at is not None:
        parts.append(f"Failed last at {clock(target.failed_at)}: {target.failure}")
    elif target.failure:
        parts.append(target.failure)
    if where and target.detail:
        # A reason is a sentence already.
        ends = "" if target.detail.endswith(".") or not parts else "."
        parts.insert(0, f"{target.detail}{ends}")
    return " ".join(parts)
