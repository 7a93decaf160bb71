"""`sndr run` and `sndr stop`: start a model, say where it answers, end it."""

import contextlib
import socket

import click

from engine_host.cli.on_demand.adding import (
    Stay,
    add,
    keep_options,
    on_demand_option,
    refuse_with,
    refuse_without,
)
from engine_host.cli.output import Exit, Output, command, echo
from engine_host.cli.param_types import FiniteRange
from engine_host.cli.start.follow import StartOptions, start, stop_engine
from engine_host.cli.start.host import connected, connected_or_none
from engine_host.cli.start.options import LaunchOptions, launch_options
from engine_host.cli.start.running import GONE, only_one
from engine_host.cli.text.waiting import told_if_interrupted
from engine_host.client.sync import ControlClient
from engine_host.core.did_you_mean import meant_or
from engine_host.core.errors import HostError
from engine_host.core.paths import Folders
from engine_host.protocol.engines import DRAIN_SECONDS
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import EngineKind, LaunchRequest
from engine_host.protocol.models import ModelOrigin
from engine_host.protocol.operations import table as ops


@click.command()
@click.argument("model", required=False)
@click.option(
    "--demo", is_flag=True, help="Run the model that ships with the program, and ask it a question."
)
@launch_options
@click.option("--keep", is_flag=True, help="Keep the engine running when the host ends.")
@click.option("--dry-run", is_flag=True, help="Print the launch plan and start nothing.")
@click.option("--detach", is_flag=True, help="Return when the model is ready; host and model keep running.")
@on_demand_option
@keep_options
@command(
    "sndr run --demo", "sndr run qwen3-8b --context 32768 --detach", "sndr run models/tuned.gguf --dry-run"
)
def run(
    out: Output,
    model: str | None,
    demo: bool,
    options: LaunchOptions,
    keep: bool,
    dry_run: bool,
    detach: bool,
    on_demand: bool,
    stay: Stay,
) -> Exit | None:
    """Start MODEL (an id of `sndr models`, or a path) and serve it until Ctrl+C.

    Starts a host when none runs, and then ends it again; one that ran before is left as it was. Engines run
    side by side as far as memory allows. Where one of the same name runs already, nothing is started (exit
    code 6) without --instead-of NAME or --replace; --name gives this one another name. With --detach one that
    runs with the very same settings is what was asked for: its address is printed.
    """
    if (model is None) is not demo:
        raise click.UsageError("Give either a MODEL or --demo.")
    request = options.request(model or "", keep=keep)

    def plan_request(client: ControlClient) -> LaunchRequest:
        if model is not None:
            return request
        return request.model_copy(update={"model": _demo_model(client, request.engine)})

    if on_demand:
        refuse_with({"--dry-run": dry_run, "--detach": detach})
        add(out, plan_request, stay)
        return None
    refuse_without(stay)
    return start(out, StartOptions(dry_run=dry_run, detach=detach, ask_demo=demo), plan_request)


@click.command()
@click.argument("engine", required=False)
@click.option("--all", "every", is_flag=True, help="Stop every engine.")
@click.option("--now", is_flag=True, help="Do not wait for answers that are being written.")
@click.option(
    "--wait",
    type=FiniteRange(0, 86400),
    metavar="SECONDS",
    help="Wait so long for answers that are being written (default: 10); new requests are refused.",
)
@command("sndr stop qwen3-8b", "sndr stop old --wait 600", "sndr stop --all")
def stop(out: Output, engine: str | None, every: bool, now: bool, wait: float | None) -> Exit | None:
    """Stop ENGINE (an id or a model's name); without one, the only engine that runs."""
    if engine is not None and every:
        raise click.UsageError("Give either an ENGINE or --all.")
    if now and wait is not None:
        raise click.UsageError("Give either --now or --wait.")
    seconds = DRAIN_SECONDS if wait is None else wait
    found = connected_or_none() if every and not _kept_engine_listens() else connected()
    if found is None:
        out.note("No engine host runs; there was nothing to stop.")
        return None
    with found as client:
        runs = [one for one in client.call(ops.ENGINES).engines if one.state not in GONE]
        alive = [one for one in runs if engine is None or engine in {one.id, one.name}]
        if not alive and every:
            out.note("No engine runs; there was nothing to stop.")
            return None
        if not alive:
            message = (
                tr("No engine runs.") if engine is None else tr("No engine {engine} runs.", engine=engine)
            )
            see = Fix(text="See what runs.", command="sndr status")
            fix = meant_or(see, engine or "", [one.name for one in runs])
            raise HostError(Reason.NOT_FOUND, message, fix=fix)
        if not every:
            only_one(alive, "Name one of them, or end all with --all.")
        stopped = []
        for one in alive:
            with told_if_interrupted(f"{one.name} goes on stopping: `sndr status` says when it has."):
                stopped.append(stop_engine(client, one, now=now, wait=seconds))
    if out.as_json:
        for one in stopped:
            out.record(one)
    else:
        echo("\n".join(f"{one.name} ({one.id}) is stopped." for one in stopped))
    return None


def _kept_engine_listens() -> bool:
    """Return True if an engine that a host has left running answers: without a host nothing here ends it."""
    for path in Folders.resolve().run.glob("plan-*.sock"):
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as asked:
            asked.connect(str(path))
            return True
    return False


def _demo_model(client: ControlClient, engine: EngineKind) -> str:
    """The bundled model in the form that the engine reads."""
    form = "safetensors" if engine is EngineKind.VLLM else "GGUF"
    bundled = [one for one in client.call(ops.MODELS).models if one.origin is ModelOrigin.BUNDLED]
    for model in bundled:
        if model.format == form:
            return model.id
    if form == "safetensors" and bundled:
        raise HostError(
            Reason.MODEL_FILE_MISSING,
            "The bundled model is here as GGUF alone, and vLLM reads safetensors.",
            cause="Its safetensors are made from the GGUF when the program is set up.",
            fix=Fix(text="Set the program up again, in its folder.", command="make setup"),
        )
    raise HostError(
        Reason.MODEL_FILE_MISSING,
        "The model that ships with the program is not there.",
        cause="The clone or the installation is incomplete.",
        fix="Get the folder resources/models back, or name a model of your own: `sndr run MODEL`.",
    )
