"""`sndr launch`: show what a preset would do on this machine, then start it and follow it."""

import click

from engine_host.cli.fit import VERDICTS
from engine_host.cli.on_demand.adding import (
    Stay,
    add,
    keep_options,
    on_demand_option,
    refuse_with,
    refuse_without,
)
from engine_host.cli.output import Exit, Output, command, size
from engine_host.cli.remote.here import launch_as_service, refuse_with_service
from engine_host.cli.render import TARGETS, RenderOptions, render_options, write_down
from engine_host.cli.start.consent import accept_option
from engine_host.cli.start.follow import StartOptions, start
from engine_host.cli.start.host import find_or_start
from engine_host.cli.start.options import LaunchOptions, launch_options
from engine_host.client.sync import ControlClient
from engine_host.protocol.launch.fit import FitReport, FitRequest, Verdict
from engine_host.protocol.launch.plans import LaunchRequest
from engine_host.protocol.operations import table as ops
from engine_host.protocol.remote.services import ServiceManager


@click.command()
@click.argument("preset")
@click.option(
    "--model", default="", metavar="MODEL", help="Start this model or file with the preset's settings."
)
@launch_options
@click.option("--keep", is_flag=True, help="Keep the engine running when the host ends.")
@click.option("--dry-run", is_flag=True, help="Print the launch plan and start nothing.")
@click.option("--detach", is_flag=True, help="Return when the model is ready; host and model keep running.")
@accept_option
@click.option(
    "--in",
    "manager",
    type=click.Choice([one.value for one in ServiceManager]),
    help="Have it carried out by Docker, Podman or systemd on this machine, in the place of an engine here.",
)
@click.option("--render", "target", type=TARGETS, help="Start nothing: render the start for this target.")
@render_options
@on_demand_option
@keep_options
@command(
    "sndr launch qwen3-4b-16",
    "sndr launch qwen3-8b-k8v4-24 --dry-run",
    "sndr launch qwen3-8b-k8v4-24 --in podman",
)
def launch(
    out: Output,
    preset: str,
    model: str,
    options: LaunchOptions,
    keep: bool,
    dry_run: bool,
    detach: bool,
    accept: str | None,
    manager: str | None,
    target: str | None,
    rendering: RenderOptions,
    on_demand: bool,
    stay: Stay,
) -> Exit | None:
    """Start PRESET (an id of `sndr presets list`) and serve it until Ctrl+C.

    The plan is shown first: whether it fits, each setting with the layer that set it, what was noticed and
    what to do about it, what runs beside it, and what differs from an engine that it replaces. Nothing is
    downloaded: for a model that is not here the command is named that fetches it. Otherwise as `sndr run`.

    With --render nothing is started: the start is written down as a script, for containers, as units of
    systemd or for Kubernetes, for this machine or for --hardware. With --in it is written down and carried
    out at once: by a container or a unit of this machine, which goes on when this command and the host end.
    """
    request = options.request(model, keep=keep).model_copy(update={"preset": preset})
    if on_demand:
        refuse_with({"--dry-run": dry_run, "--detach": detach, "--render": target is not None})
        add(out, lambda _client: request, stay, accept)
        return None
    refuse_without(stay)
    if manager is not None:
        refuse_with_service({"--keep": keep, "--render": target is not None, "--model": bool(model)})
        return launch_as_service(out, ServiceManager(manager), request, rendering, dry_run, accept, detach)
    if target is not None:
        of_starts = {"--dry-run": dry_run, "--detach": detach}
        if conflicting := [name for name, value in of_starts.items() if value]:
            raise click.UsageError(
                f"{' and '.join(conflicting)} cannot go with --render, which starts nothing."
            )
        with find_or_start() as hold:
            write_down(out, hold.client, rendering, request, target, accept)
        return None
    if rendering.given:
        raise click.UsageError(
            "--hardware, --count, --port, --address, --output, --overwrite and --force need --render."
        )

    def about(client: ControlClient) -> str:
        return _verdict(client.call(ops.FIT, _question(request)))

    start_options = StartOptions(dry_run=dry_run, detach=detach, about=about, accept=accept)
    return start(out, start_options, lambda _client: request)


def _question(request: LaunchRequest) -> FitRequest:
    """Build the fit request of a start, with the settings that were given here."""
    given = request.overrides
    fields = {
        "model": request.model or None,
        "instead_of": request.instead_of,
        "use_gpus": request.gpus or None,
        "context": given.context,
        "streams": given.streams,
        "kv": given.kv_cache_dtype or given.kv_type_k,
        "kv_v": given.kv_type_v,
        "tensor_parallel": given.tensor_parallel,
        "gpu_memory": given.gpu_memory,
        "kv_cache_gib": given.kv_cache_gib,
        "batched_tokens": given.batched_tokens,
        "speculation": None if given.speculation is None else "mtp" in given.speculation,
        "draft_tokens": given.draft_tokens,
        "prefix_caching": given.prefix_caching,
        "eager": given.eager,
    }
    known = {name: value for name, value in fields.items() if value is not None}
    return FitRequest.model_validate({"preset": request.preset, **known})


def _verdict(report: FitReport) -> str:
    where = "" if report.verdict is Verdict.CANNOT_RUN else " on this machine"
    text = f"{report.preset} {VERDICTS[report.verdict]}{where}"
    if report.devices:
        fullest = min(report.devices, key=lambda device: device.free_after)
        text += f": {size(fullest.needed)} of {size(fullest.room)} ({fullest.name})"
    more = f" {report.why}" if report.why else ""
    return f"{text}.{more}"
