"""`sndr host stage|promote|rollback`: an engine without traffic, a public id led to it, and taken back."""

import functools
import shlex
from collections.abc import Callable
from typing import Any, TypeVar

import click

from engine_host.cli.output import CODES, Exit, Output, command, size
from engine_host.cli.remote.connecting import connect
from engine_host.cli.remote.install import change_lines
from engine_host.cli.start.consent import accept_option, demand_lines
from engine_host.cli.start.host import find_or_start
from engine_host.cli.start.options import LaunchOptions, launch_options
from engine_host.cli.start.remote import until_engine_host
from engine_host.cli.text.job_progress import begin
from engine_host.cli.text.plan import finding_lines
from engine_host.cli.text.tables import table
from engine_host.client.sync import ControlClient
from engine_host.core.did_you_mean import meant_or
from engine_host.core.errors import HostError
from engine_host.core.outside.model_ids import check_id
from engine_host.protocol.base import Severity
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import Finding
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations import remote_hosts as host_ops
from engine_host.protocol.operations import remote_staging as ops
from engine_host.protocol.remote.hosts import THIS_MACHINE, RemoteMode
from engine_host.protocol.remote.staging import (
    PromoteOnHost,
    Promotion,
    PromotionPlan,
    StagedEngine,
    StageOnHost,
    StagePlan,
)

_Plan = TypeVar("_Plan", StagePlan, PromotionPlan)


def _ends_nothing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of a start without those that end engines."""
    given: list[click.Parameter] = getattr(function, "__click_params__", [])
    given[:] = [one for one in given if one.name not in ("replace", "instead_of")]

    @functools.wraps(function)
    def run(*words: Any, **options: Any) -> Any:
        return function(*words, replace=False, instead_of=(), **options)

    return run


_dry_run = click.option("--dry-run", is_flag=True, help="Print what would change, and change nothing.")


@click.command("stage")
@click.argument("machine", metavar="NAME")
@click.argument("what", metavar="PRESET|MODEL")
@_ends_nothing
@launch_options
@click.option("--as", "as_", metavar="ENGINE", help="Its public name there; the same as --name.")
@click.option("--for", "route", metavar="PUBLIC_ID", help="The public id that it is meant for.")
@click.option("--keep", is_flag=True, help="Keep the engine running when the host there ends.")
@accept_option
@_dry_run
@command("sndr host stage gpu qwen3-8b-k8v4-24 --as qwen3-new --for coder")
def stage(
    out: Output,
    machine: str,
    what: str,
    options: LaunchOptions,
    as_: str | None,
    route: str | None,
    keep: bool,
    accept: str | None,
    dry_run: bool,
) -> Exit | None:
    """Start PRESET or MODEL on NAME beside what runs there, with no route to it.

    The plan is made there first: what it takes, what is left, or by how much it misses. It ends nothing and
    leads no request anywhere; `sndr host promote` does that, after real requests were answered.
    """
    if route is not None:
        check_id(route)
    if as_ and options.name and as_ != options.name:
        raise click.UsageError("--as and --name say two names: give one of them.")
    if what.startswith(("~", ".")) or (what.endswith(".gguf") and not what.startswith("/")):
        raise click.UsageError(f"{what!r} is a path of this machine: give the whole path on {machine}.")
    launch = options.request("", keep=keep)
    launch = launch.model_copy(update={"name": as_ or options.name})
    asked = StageOnHost(what=what, launch=launch, route=route, consent=accept)
    with find_or_start(daemon=True) as hold:
        with hold.ending_if_not_found():
            _reach(hold.client, machine, out)
        plan = hold.client.call(ops.PLAN_STAGE, asked, name=machine)
        if dry_run:
            out.result(plan, stage_lines(plan))
            return _exit(plan.findings)
        for line in stage_lines(_unstopped(plan)):
            out.note(line)
        staged = StagedEngine.model_validate(
            begin(hold.client, lambda: hold.client.call(ops.STAGE, asked, name=machine), out).result
        )
    lines = [f"{staged.target} is ready, and no route leads to it."]
    lines += [f"Try it: sndr --host {machine} chat --model {shlex.quote(staged.name)}"]
    lines += [f"Promote it: {staged.promote}"]
    lines += [f"Or end it: sndr --host {machine} stop {shlex.quote(staged.name)}"]
    out.result(staged, lines)
    return None


@click.command("promote")
@click.argument("name")
@click.argument("public_id")
@click.argument("engine")
@click.option(
    "--stop-old", is_flag=True, help="End what it led to before, once its requests have ended there."
)
@_dry_run
@command("sndr host promote gpu coder qwen3-new --stop-old")
def promote(
    out: Output, name: str, public_id: str, engine: str, stop_old: bool, dry_run: bool
) -> Exit | None:
    """Lead PUBLIC_ID to ENGINE on NAME after real requests were answered there; else nothing is changed.

    The same as `sndr routes cutover PUBLIC_ID NAME/ENGINE`, with a plan first; it also makes a route that is
    not there yet. The name `local` stands for this machine.
    """
    check_id(public_id)
    asked = PromoteOnHost(route=public_id, engine=engine, stop_old=stop_old)
    with find_or_start() as hold:
        if name != THIS_MACHINE:
            _reach(hold.client, name, out)
        plan = hold.client.call(ops.PLAN_PROMOTION, asked, name=name)
        if dry_run:
            out.result(plan, promotion_lines(plan))
            return _exit(plan.findings)
        for line in promotion_lines(_unstopped(plan)):
            out.note(line)
        done = Promotion.model_validate(
            begin(hold.client, lambda: hold.client.call(ops.PROMOTE, asked, name=name), out).result
        )
    out.result(done, _done_lines(done, f"{done.id} leads to {done.target} now."))
    return None


@click.command("rollback")
@click.argument("word", metavar="NAME|PUBLIC_ID")
@_dry_run
@command("sndr host rollback coder")
def rollback(out: Output, word: str, dry_run: bool) -> Exit | None:
    """Lead PUBLIC_ID where it led before, or what was promoted last to an engine of NAME.

    An engine that the promotion ended is started anew as it was; where that is not possible nothing is
    changed, and it is said why.
    """
    with find_or_start() as hold:
        route = _rolled_back(hold.client, word)
        _reach_targets(hold.client, route, out)
        plan = hold.client.call(ops.PLAN_ROLLBACK, id=route)
        if dry_run:
            out.result(plan, promotion_lines(plan))
            return _exit(plan.findings)
        for line in promotion_lines(_unstopped(plan)):
            out.note(line)
        done = Promotion.model_validate(
            begin(hold.client, lambda: hold.client.call(ops.ROLLBACK, id=route), out).result
        )
    if done.route is None:
        said = f"{done.id} is no route any more, as before its promotion."
    else:
        said = f"{done.id} leads to {' and '.join(done.route.targets.engines) or 'its provider'} again."
    out.result(done, _done_lines(done, said))
    return None


def stage_lines(plan: StagePlan) -> list[str]:
    """A staging as a diff of that machine, with the memory that it takes and leaves."""
    rows = [
        (
            need.device,
            _bytes(need.takes),
            _bytes(need.free),
            f"misses {size(-need.left)}" if need.left is not None and need.left < 0 else _bytes(need.left),
        )
        for need in plan.needs
    ]
    return [
        *change_lines(plan.changes),
        *table((f"on {plan.host}", "takes", "free now", "left then"), rows),
        *(demand_lines(plan.plan.consent) if plan.plan.consent is not None else ()),
        *(line for one in plan.findings for line in finding_lines(one)),
        f"Promote it afterwards: {plan.promote}",
    ]


def promotion_lines(plan: PromotionPlan) -> list[str]:
    """A promotion or its roll-back as a diff of the route and of the engines."""
    checks = [f"first it has to answer: {', '.join(plan.checks)}"] if plan.checks else []
    same = [f"the same: {plan.same_as}"] if plan.same_as else []
    found = [line for one in plan.findings for line in finding_lines(one)]
    return [f"route {plan.route}", *change_lines(plan.changes), *checks, *found, *same]


def _done_lines(done: Promotion, said: str) -> list[str]:
    rows = [(one.target, one.name, f"{one.seconds:.1f} s", one.detail) for one in done.checks]
    lines = [*table(("target", "request", "took", "evidence"), rows), ""] if rows else []
    lines.append(said)
    lines += [f"{one.target} was started anew." for one in done.started]
    lines += [f"{one.target} has ended." for one in done.ended]
    lines += [line for one in done.findings for line in finding_lines(one)]
    return [*lines, *([f"Back with one command: {done.back}"] if done.back else [])]


def _rolled_back(client: ControlClient, word: str) -> str:
    """The public id that is meant. Raises HostError: not_found, conflict for a word of two things."""
    routes = {one.route.id for one in client.call(endpoint_ops.ROUTES).routes}
    hosts = {one.name for one in client.call(host_ops.HOSTS).hosts} | {THIS_MACHINE}
    if word in routes and word in hosts:
        raise HostError(
            Reason.CONFLICT,
            tr("{word} is a host and a public id.", word=word),
            fix=Fix(text="Take the public id back at once with:", command=f"sndr routes back {word}"),
        )
    if word in routes:
        return word
    if word not in hosts:
        raise HostError(
            Reason.NOT_FOUND,
            tr("There is no host and no public id {word}.", word=repr(word[:100])),
            cause=tr("Public ids are: {routes}.", routes=", ".join(sorted(routes)) or tr("none")),
            fix=meant_or(Fix(text="See which there are.", command="sndr routes list"), word, routes | hosts),
        )
    promotions = client.call(ops.PROMOTIONS, name=word).promotions
    if not promotions:
        raise HostError(
            Reason.NOT_FOUND,
            tr("Nothing was promoted on {word} that is to be taken back.", word=word),
            fix=Fix(text="Name the public id.", command="sndr routes list"),
        )
    return promotions[0].id


def _reach(client: ControlClient, name: str, out: Output) -> None:
    """Connect a host and wait for its engine host. Raises HostError."""
    connect(client, name, out)
    until_engine_host(client, name)


def _reach_targets(client: ControlClient, route: str, out: Output) -> None:
    """Connect the machines that a route led to before; the plan says why one cannot be asked."""
    before = client.call(endpoint_ops.ROUTE, id=route).route.before
    hosts = {one.name for one in client.call(host_ops.HOSTS).hosts if one.mode is RemoteMode.ENGINE_HOST}
    targets = before.engines if before is not None else ()
    for name in dict.fromkeys(target.partition("/")[0] for target in targets if "/" in target):
        if name in hosts:
            try:
                _reach(client, name, out)
            except HostError as error:
                out.note(error.problem.sentence())


def _unstopped(plan: _Plan) -> _Plan:
    """Return a plan without what stops it, which is said once, as the error that it becomes."""
    left = tuple(one for one in plan.findings if one.severity is not Severity.ERROR)
    return plan.model_copy(update={"findings": left})


def _exit(findings: tuple[Finding, ...]) -> Exit | None:
    found = next((one for one in findings if one.severity is Severity.ERROR), None)
    if found is None:
        return None
    return CODES[found.reason] if found.reason is not None else Exit.FAILED


def _bytes(count: int | None) -> str:
    return "not known" if count is None else size(count)
