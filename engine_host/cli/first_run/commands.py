"""`sndr setup`: this machine, the models that are here, one thing to start, a first measurement."""

import sys

import click

from engine_host.cli.bench.lab_text import report_lines
from engine_host.cli.output import Exit, Output, command, echo, size
from engine_host.cli.start.follow import signals, stop_engine, until_ready
from engine_host.cli.start.host import HostHold, find_or_start
from engine_host.cli.status import gpu_text
from engine_host.cli.text.chosen_host import typed
from engine_host.cli.text.job_progress import begin
from engine_host.cli.text.tables import pairs, paragraph
from engine_host.client.first_run.overview import (
    IN_PLACE,
    ModelPlace,
    first_measurement,
    no_others,
    only_bundled,
    places,
    presets_sentence,
    recommended,
)
from engine_host.client.sync import ControlClient
from engine_host.core.errors import HostError
from engine_host.core.likely_causes import lost_file
from engine_host.protocol.bench.lab import LabRun
from engine_host.protocol.engines import Engine, EngineState, ServerPage
from engine_host.protocol.errors import Reason
from engine_host.protocol.host import HostInfo
from engine_host.protocol.launch.plans import LaunchRequest, StartRequest
from engine_host.protocol.models import ModelFile
from engine_host.protocol.operations import bench as bench_ops
from engine_host.protocol.operations import table as ops
from engine_host.protocol.presets import JudgePresets

_SERVING = {EngineState.READY, EngineState.BUSY}


@click.command()
@click.option(
    "--measure/--no-measure",
    default=None,
    help="Start the recommended model and measure it, or do not; at a terminal it is asked otherwise.",
)
@command("sndr setup", "sndr setup --measure")
def setup(out: Output, measure: bool | None) -> Exit | None:
    """Say what this machine is and can do, which models are here, and what to start first.

    Looks for models of Hugging Face, LM Studio, Ollama and llama.cpp, which are used where they are. The
    recommended model ships with the program: it runs on any machine and needs no network. A measurement
    starts it, asks it for a short story four times, and ends what it started. It can be repeated at any time;
    nothing of it changes a setting.
    """
    with signals(), find_or_start() as hold:
        client = hold.client
        out.note("Looking at this machine …")
        host = client.call(ops.HOST)
        models = client.call(ops.MODELS).models
        verdicts = client.call(ops.JUDGE_PRESETS, JudgePresets()).verdicts
        found = places(models)
        first = recommended(models)
        if not out.as_json:
            lines = _machine(host, client.call(ops.SERVERS), presets_sentence(verdicts))
            for line in [*lines, "", *_models(found, alone=only_bundled(models)), "", *_first(first)]:
                echo(typed(line))
        wanted = measure if measure is not None else first is not None and _asked(out)
        run = _measured(out, hold, first) if wanted else None
    if out.as_json:
        out.record(
            {
                "host": host.model_dump(mode="json"),
                "places": [
                    {"name": one.name, "models": one.count, "usable": one.startable, "size": one.size}
                    for one in found
                ],
                "presets": presets_sentence(verdicts),
                "recommended": first.id if first else None,
                "run": run.model_dump(mode="json") if run else None,
            }
        )
    elif run is not None:
        for line in ["", *report_lines(run), "", "It is kept: sndr bench report"]:
            echo(typed(line))
    return Exit.FAILED if run is not None and run.struck else None


def _machine(host: HostInfo, servers: ServerPage, presets: str) -> list[str]:
    here = [one for one in servers.servers if one.present and one.problem is None]
    rows = [
        ("processor", f"{host.cpu_name}, {host.cpu_cores} cores, {host.cpu_threads} threads"),
        ("RAM", f"{size(host.ram_used)} of {size(host.ram_total)} used"),
        ("GPU", gpu_text(host)),
        ("llama.cpp", ", ".join(one.version for one in here) or "no server works here: sndr engine list"),
        ("can do", presets),
    ]
    return ["This machine", *pairs(rows, "  ")]


def _models(found: tuple[ModelPlace, ...], *, alone: bool) -> list[str]:
    lines = ["Models that are here", *pairs([(one.name, one.about) for one in found], "  ")]
    return [*lines, *paragraph(f"  {no_others() if alone else IN_PLACE}")]


def _first(first: ModelFile | None) -> list[str]:
    if first is None:
        return ["The model that ships with the program is not there; start one of yours: sndr run MODEL"]
    return [
        f"To start first: {first.name} ({size(first.size)}), on any machine and without a network",
        f"  $ sndr run {first.id}",
    ]


def _asked(out: Output) -> bool:
    if out.as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    return click.confirm("\nStart it now, measure it for a short while, and end it again?", default=True)


def _measured(out: Output, hold: HostHold, model: ModelFile | None) -> LabRun:
    """Start the recommended model unless it runs, measure it, and end what was started here."""
    client = hold.client
    engine, started = _started(out, client, model)
    try:
        asked = first_measurement(engine.name)
        ended = begin(client, lambda: client.call(bench_ops.RUN_BENCH, asked), out)
        kept = ended.result.get("runs", ())
        return client.call(bench_ops.BENCH_RUN, id=str(next(iter(kept), "latest")))
    finally:
        if started and not hold.started_here:
            # The interrupted connection may have half an answer in it.
            with client.again() as fresh:
                stop_engine(fresh, engine, now=True)


def _started(out: Output, client: ControlClient, model: ModelFile | None) -> tuple[Engine, bool]:
    if model is None:
        raise HostError(
            Reason.MODEL_FILE_MISSING,
            "The model that ships with the program is not there, so there is nothing to measure.",
            cause=lost_file(),
            fix="Start a model of yours, then `sndr bench run quick`.",
        )
    for engine in client.call(ops.ENGINES).engines:
        if engine.state in _SERVING and engine.plan.model == model.id:
            return engine, False
    plan = client.call(ops.PLAN, LaunchRequest(model=model.id))
    engine = client.call(ops.START, StartRequest(plan=plan.id, replace=False))
    out.note(f"Starting {plan.name} …")
    return until_ready(client, engine, out), True
