"""`sndr on-demand`: the models that a request loads, and what each does now."""

import shlex
import time

import click

from engine_host.cli.on_demand.adding import Stay, add, keep_options, rest, seconds_of, stays
from engine_host.cli.output import Exit, Output, command
from engine_host.cli.param_types import FiniteRange
from engine_host.cli.start.consent import accept_option
from engine_host.cli.start.host import connected, find_or_start
from engine_host.cli.start.options import LaunchOptions, launch_options, overrides_of
from engine_host.cli.start.running import GONE
from engine_host.cli.text.tables import table
from engine_host.cli.text.whole_help import WholeHelp
from engine_host.core.sizes import duration
from engine_host.protocol.endpoint.on_demand import LoadOnDemand, OnDemandDetail, OnDemandModel, OnDemandState
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations import table as ops


@click.group("on-demand", cls=WholeHelp)
def on_demand() -> None:
    """Say which models a request may load, and see what each of them does."""


@on_demand.command("add")
@click.argument("model", required=False, default="")
@click.option("--preset", metavar="PRESET", help="Load this preset.")
@click.option("--model", "file", default="", metavar="MODEL", help="With --preset: the model or file.")
@keep_options
@launch_options
@accept_option
@command("sndr on-demand add qwen3-8b --keep-alive 30", "sndr on-demand add --preset qwen3-4b-16 --pin")
def add_model(
    out: Output,
    model: str,
    preset: str | None,
    file: str,
    stay: Stay,
    options: LaunchOptions,
    accept: str | None,
) -> Exit | None:
    """Let requests load MODEL, or a preset, under its public name (--name); nothing is started now.

    The first request that names it starts it and waits for its answer. When it was not asked for
    --keep-alive minutes it is stopped, and when its memory is needed for another one that is asked for.
    """
    if bool(model) + bool(file) > 1 or not (model or preset):
        raise click.UsageError("Give either a MODEL or --preset PRESET.")
    request = options.request(model or file).model_copy(update={"preset": preset})
    add(out, lambda _client: request, stay, accept)
    return None


@on_demand.command("list")
@command("sndr on-demand list")
def show_all(out: Output) -> Exit | None:
    """List the models that a request loads, with their state and when each is stopped."""
    with find_or_start() as hold:
        page = hold.client.call(endpoint_ops.ON_DEMAND)
    text = lines(page.models) if page.models else ["No model is loaded on demand: sndr run MODEL --on-demand"]
    out.result(page, text)
    return None


@on_demand.command("show")
@click.argument("name")
@command("sndr on-demand show qwen3-8b")
def show_one(out: Output, name: str) -> Exit | None:
    """Show NAME, and the settings that a load of it may be given."""
    with find_or_start() as hold:
        detail = hold.client.call(endpoint_ops.ON_DEMAND_MODEL, id=name)
    out.result(detail, [*lines((detail.model,)), "", *_settings(detail), "", f"$ {detail.model.command}"])
    return None


@on_demand.command("remove")
@click.argument("name")
@command("sndr on-demand remove qwen3-8b")
def remove(out: Output, name: str) -> Exit | None:
    """Let no request load NAME any more; an engine of it that runs goes on."""
    with find_or_start() as hold:
        page = hold.client.call(endpoint_ops.REMOVE_ON_DEMAND, id=name)
        runs = any(
            one.name == name and one.state not in GONE for one in hold.client.call(ops.ENGINES).engines
        )
    left = f" Its engine goes on until you stop it: sndr stop {shlex.quote(name)}" if runs else ""
    out.result(page, f"{name} is not loaded on demand any more.{left}")
    return None


@on_demand.command("load")
@click.argument("name")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting for this load alone.")
@click.option(
    "--keep-alive",
    type=FiniteRange(-1, 525_600),
    metavar="MINUTES",
    help="For this load: stop it after this long without a request; 0 at once, -1 never.",
)
@command("sndr on-demand load qwen3-8b")
def load(out: Output, name: str, settings: tuple[str, ...], keep_alive: float | None) -> Exit | None:
    """Load NAME now, as a request for it would; the answer does not wait for it."""
    asked = LoadOnDemand(
        overrides=overrides_of(settings), keep_alive=None if keep_alive is None else seconds_of(keep_alive)
    )
    with connected() as client:
        model = client.call(endpoint_ops.LOAD_ON_DEMAND, asked, id=name)
    out.result(model, f"{model.name} is {model.state.value}; {rest(model)}.")
    return None


@on_demand.command("unload")
@click.argument("name")
@command("sndr on-demand unload qwen3-8b")
def unload(out: Output, name: str) -> Exit | None:
    """Drain and stop NAME; the next request loads it again."""
    with connected() as client:
        model = client.call(endpoint_ops.UNLOAD_ON_DEMAND, id=name)
    ended = model.state is OnDemandState.LOADABLE
    said = "is not loaded any more" if ended else "ends when it has answered what it was asked"
    out.result(model, f"{model.name} {said}.")
    return None


def lines(models: tuple[OnDemandModel, ...]) -> list[str]:
    """Return models as a table, with their problems below it."""
    rows = [(one.name, state_of(one), str(one.waiting or "-"), stays(one)) for one in models]
    found = table(("on demand", "state", "waiting", "stays"), rows)
    return found + [f"{one.name}: {one.problem.message}" for one in models if one.problem is not None]


def state_of(model: OnDemandModel, now: float | None = None) -> str:
    """Say what a model does, and when it is stopped."""
    now = time.time() if now is None else now
    if model.state is not OnDemandState.LOADED:
        return model.state.value
    if model.by_hand:
        return "runs, started by hand"
    if model.unloads_at is None:
        return "loaded"
    idle = f"idle for {duration(max(now - (model.last_used or now), 0))}"
    return f"{idle}, stops in {duration(max(model.unloads_at - now, 0))}"


def _settings(detail: OnDemandDetail) -> list[str]:
    rows = [
        (
            one.name,
            one.kind,
            "-" if one.value is None else str(one.value),
            "" if one.minimum is None else f"{one.minimum:.12g} to {one.maximum:.12g}",
            one.unit or "-",
            "set" if one.given else "",
        )
        for one in detail.settings
    ]
    return table(("setting", "kind", "value", "bounds", "unit", "here"), rows)
