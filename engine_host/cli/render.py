"""`sndr render` and `sndr launch --render`: a start written down as files for something else to carry out."""

import functools
import ipaddress
import shlex
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click
from pydantic import TypeAdapter, ValidationError

from engine_host.cli.output import Exit, Output, command
from engine_host.cli.param_types import counted_hardware
from engine_host.cli.render_folder import write_files
from engine_host.cli.start.consent import accept_option, with_consent
from engine_host.cli.start.host import find_or_start
from engine_host.cli.start.options import LaunchOptions, launch_options, with_option
from engine_host.cli.start.suggestions import with_near_names
from engine_host.cli.text.plan import finding_lines
from engine_host.cli.text.tables import pairs
from engine_host.client.sync import ControlClient
from engine_host.core.errors import HostError
from engine_host.protocol.launch.deploy import GpuUuid, Rendering, RenderRequest, RenderTarget
from engine_host.protocol.launch.plans import LaunchRequest
from engine_host.protocol.operations import table as ops

TARGETS = click.Choice([target.value for target in RenderTarget])
_PORT, _ADDRESS = 8000, "127.0.0.1"
_GPU_UUID: TypeAdapter[str] = TypeAdapter(GpuUuid)


@dataclass(frozen=True)
class RenderOptions:
    """The options of a rendering from the command line."""

    hardware: str | None
    count: int | None
    port: int
    address: str
    output: Path | None
    overwrite: bool
    force: bool

    @property
    def given(self) -> bool:
        """True if any option of a rendering was given."""
        placed = (self.port, self.address) != (_PORT, _ADDRESS)
        others = (self.hardware, self.count, self.output, self.overwrite, self.force)
        return placed or any(others)

    def request(self, launch: LaunchRequest, target: str) -> RenderRequest:
        """The request that these options make.

        Raises click.UsageError for two numbers of GPUs, and for GPUs of other hardware that are no UUIDs.
        """
        hardware, count = counted_hardware(self.hardware, self.count)
        uuids = tuple(name for name in launch.gpus if _is_uuid(name))
        if len(uuids) < len(launch.gpus):
            if hardware is not None:
                said = "With --hardware, --gpu takes UUIDs as `nvidia-smi -L` prints them (GPU-…)."
                raise click.UsageError(said)
            # The plan finds them among those of this machine.
            uuids = ()
        return RenderRequest(
            launch=launch,
            target=RenderTarget(target),
            hardware=hardware,
            count=count,
            gpus=uuids,
            port=self.port,
            address=self.address,
            force=self.force,
        )


class AddressType(click.ParamType[str]):
    """An IP address to listen on."""

    name = "address"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The address as it is. Raises click.BadParameter."""
        try:
            return str(ipaddress.ip_address(value))
        except ValueError:
            self.fail(
                f"{str(value)[:80]!r} is no IP address. "
                "127.0.0.1 is this machine alone, 0.0.0.0 lets others in.",
                param,
                ctx,
            )


def _is_uuid(name: str) -> bool:
    try:
        _GPU_UUID.validate_python(name)
    except ValidationError:
        return False
    return True


def render_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of a rendering, handed over as `rendering`."""
    names = [one.name for one in fields(RenderOptions)]

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        options = RenderOptions(**{name: kwargs.pop(name) for name in names})
        return function(*args, rendering=options, **kwargs)

    for option in reversed(_OPTIONS):
        run = option(run)
    return run


_OPTIONS = (
    click.option(
        "--hardware",
        metavar="[N x ]ID",
        help="Rendering: for other GPUs, e.g. `2x rtx-3090` (sndr presets hardware).",
    ),
    click.option("--count", type=click.IntRange(1, 8), help="Rendering: number of GPUs."),
    click.option(
        "--port",
        type=click.IntRange(1, 65535),
        default=_PORT,
        show_default=True,
        help="Rendering: port of the engine.",
    ),
    click.option(
        "--address",
        type=AddressType(),
        default=_ADDRESS,
        show_default=True,
        help="Rendering: address of the port; 0.0.0.0 lets other machines connect.",
    ),
    click.option(
        "-o",
        "--output",
        type=click.Path(file_okay=False, path_type=Path),
        help="Rendering: folder for all files (default: print the first one).",
    ),
    click.option(
        "--overwrite",
        is_flag=True,
        help="Rendering: overwrite changed files, or those of another start.",
    ),
    click.option("--force", is_flag=True, help="Rendering: render despite findings that prevent the start."),
)


@click.command("render")
@click.argument("wanted", metavar="PRESET|MODEL")
@click.option("--target", required=True, type=TARGETS, help="Deployment target.")
@click.option("--model", default="", metavar="MODEL", help="This model or file with the preset's settings.")
@launch_options
@render_options
@accept_option
@command(
    "sndr render qwen3-8b-k8v4-24 --target compose --output deploy",
    "sndr render qwen3-8b-k8v4-24 --target kubernetes --hardware h100",
)
def render(
    out: Output,
    wanted: str,
    target: str,
    model: str,
    accept: str | None,
    options: LaunchOptions,
    rendering: RenderOptions,
) -> Exit | None:
    """Write a start down: a script, containers, units of systemd, objects of Kubernetes.

    Without --hardware it is the start that `sndr launch` or `sndr run` would make here, with this machine's
    GPUs by UUID and its files; with it nothing of this machine is in it, and the model is fetched there.
    """
    with find_or_start() as hold:
        presets = {item.preset.id for item in hold.client.call(ops.PRESETS).presets}
        if wanted in presets:
            launch = options.request(model).model_copy(update={"preset": wanted})
        else:
            launch = options.request(wanted)
        write_down(out, hold.client, rendering, launch, target, accept)
    return None


def write_down(
    out: Output,
    client: ControlClient,
    options: RenderOptions,
    launch: LaunchRequest,
    target: str,
    accept: str | None = None,
) -> None:
    """Render a start, and print it or write it into the folder that was named. Raises HostError."""
    request = options.request(launch, target)
    again = ["sndr", "render", launch.preset or launch.model, "--target", target]
    again += ["--hardware", options.hardware] if options.hardware else []
    try:
        rendering = with_consent(
            out,
            accept,
            again,
            lambda consent: client.call(ops.RENDER, request.model_copy(update={"consent": consent})),
        )
    except HostError as error:
        named = with_option(error, launch)
        raise with_near_names(client, named, launch.model or launch.preset or "") from error
    if options.output is None:
        out.result(rendering, rendering.files[0].text.rstrip("\n"))
        more = len(rendering.files) - 1
        if more:
            goes = "1 more file goes" if more == 1 else f"{more} more files go"
            out.note(f"\n{goes} with it; --output FOLDER writes all of them.")
        for finding in rendering.findings:
            for line in finding_lines(finding):
                out.note(line)
        return
    folder = options.output.resolve()
    write_files(folder, rendering, overwrite=options.overwrite)
    out.result(
        {**rendering.model_dump(mode="json", exclude={"files"}), "folder": str(folder)},
        _lines(rendering, folder),
    )


def _lines(rendering: Rendering, folder: Path) -> list[str]:
    shown = [file for file in rendering.files if file.about]
    rest = len(rendering.files) - len(shown)
    return [
        f"{rendering.title} for {rendering.target.value} is in {folder}:",
        *pairs([(file.name, file.about) for file in shown], "  "),
        *([f"  and {rest} files of the overlay"] if rest else []),
        *([f"Check: {_in(folder, rendering.check)}"] if rendering.check else []),
        f"Start: {_in(folder, rendering.start)}",
        # A script is stopped by a signal, for which there is no command.
        f"Stop:  {rendering.stop if rendering.target is RenderTarget.SHELL else _in(folder, rendering.stop)}",
        *(line for finding in rendering.findings for line in finding_lines(finding)),
    ]


def _in(folder: Path, command: str) -> str:
    """Return a command that works from any folder and leaves the shell where it is."""
    return f"(cd {shlex.quote(str(folder))} && {command})"
