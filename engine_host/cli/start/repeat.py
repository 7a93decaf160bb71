"""`sndr restart`: the same start once more, in the place of the engine that runs."""

import click

from engine_host.cli.output import Exit, Output, command
from engine_host.cli.start.follow import signals, until_ready
from engine_host.cli.start.host import connected
from engine_host.cli.start.running import GONE, only_one
from engine_host.cli.text.plan import exit_of, plan_lines
from engine_host.core.did_you_mean import meant_or
from engine_host.core.errors import HostError
from engine_host.core.sizes import duration
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import StartRequest
from engine_host.protocol.operations import table as ops


@click.command()
@click.argument("engine", required=False)
@click.option("--dry-run", is_flag=True, help="Print the launch plan and start nothing.")
@command("sndr restart qwen3-8b")
def restart(out: Output, engine: str | None, dry_run: bool) -> Exit | None:
    """Start ENGINE (an id or a model's name) again as it was started; without one, the only one that runs.

    Its requests are let finish, for ten seconds, before it ends; the new one is done when a token was
    generated. An engine that has ended is started again as well.
    """
    with signals(), connected() as client:
        found = client.call(ops.ENGINES).engines
        if engine is not None:
            named = [one for one in found if engine in {one.id, one.name}]
            # Of those that have ended the newest one of the name is meant.
            meant = [one for one in named if one.state not in GONE] or named[:1]
        else:
            meant = [one for one in found if one.state not in GONE]
        if not meant:
            message = (
                tr("No engine runs.") if engine is None else tr("There is no engine {engine}.", engine=engine)
            )
            see = Fix(text="See what runs.", command="sndr status")
            fix = meant_or(see, engine or "", [one.name for one in found])
            raise HostError(Reason.NOT_FOUND, message, fix=fix)
        old = only_one(meant, "Name one of them.")
        assert old is not None
        plan = client.call(ops.PLAN_AGAIN, id=old.id)
        if dry_run:
            out.result(plan, plan_lines(plan))
            return exit_of(plan)
        started = until_ready(client, client.call(ops.START, StartRequest(plan=plan.id)), out)
    after = f" after {duration(started.ready_after)}" if started.ready_after is not None else ""
    out.result(started, f"{started.name} is ready again{after}.")
    return None
