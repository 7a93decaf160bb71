"""`sndr render` and `sndr launch --render`: a start written down as files for something else to carry out."""

import functools
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path, PurePosixPath
from typing import Any

import click

from engine_host import atomic_file
from engine_host._errors import HostError
from engine_host.cli_launch import LaunchOptions, launch_options
from engine_host.cli_output import Exit, Output, command
from engine_host.cli_plan import finding_lines
from engine_host.control_client import ControlClient
from engine_host.host_start import find_or_start
from engine_host.protocol.deploy import RenderedFile, Rendering, RenderRequest, RenderTarget
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.plans import LaunchRequest
from engine_host.protocol.presets import PresetPage

TARGETS = click.Choice([target.value for target in RenderTarget])
_PORT, _ADDRESS = 8000, "127.0.0.1"
# Which files a rendering wrote into a folder, each with its digest: what a person changed is not overwritten.
_RECORD = ".sndr-rendering.json"


@dataclass(frozen=True)
class RenderOptions:
    """What was given on the command line for a rendering."""

    hardware: str | None
    count: int | None
    gpu: tuple[str, ...]
    port: int
    address: str
    output: Path | None
    overwrite: bool

    @property
    def given(self) -> bool:
        """Whether anything was asked of a rendering."""
        placed = (self.port, self.address) != (_PORT, _ADDRESS)
        return any((self.hardware, self.count, self.gpu, placed, self.output, self.overwrite))

    def request(self, launch: LaunchRequest, target: str) -> RenderRequest:
        """The request that these options make. Raises click.UsageError for what is no UUID or address."""
        try:
            return RenderRequest(
                launch=launch,
                target=RenderTarget(target),
                hardware=self.hardware,
                count=self.count,
                gpus=self.gpu,
                port=self.port,
                address=self.address,
            )
        except ValueError as error:
            raise click.UsageError(
                "--gpu takes UUIDs as `nvidia-smi -L` prints them (GPU-…), --address an IP address."
            ) from error


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
        "--hardware", metavar="ID", help="When written down: for other GPUs (sndr presets hardware)."
    ),
    click.option("--count", type=click.IntRange(1, 8), help="When written down: so many of them."),
    click.option(
        "--gpu", multiple=True, metavar="UUID", help="When written down: this GPU; repeat it for more."
    ),
    click.option(
        "--port",
        type=click.IntRange(1, 65535),
        default=_PORT,
        show_default=True,
        help="When written down: the port that it answers on.",
    ),
    click.option(
        "--address",
        default=_ADDRESS,
        show_default=True,
        help="When written down: the address that the port is on; 0.0.0.0 lets others in.",
    ),
    click.option(
        "-o",
        "--output",
        type=click.Path(file_okay=False, path_type=Path),
        help="When written down: the folder for all files (default: print the first one).",
    ),
    click.option(
        "--overwrite", is_flag=True, help="When written down: also over files that somebody changed."
    ),
)


@click.command("render")
@click.argument("wanted", metavar="PRESET|MODEL")
@click.option("--target", required=True, type=TARGETS, help="What carries the start out.")
@click.option("--model", default="", metavar="MODEL", help="This model or file with the preset's settings.")
@launch_options
@render_options
@command
def render(
    out: Output,
    wanted: str,
    target: str,
    model: str,
    options: LaunchOptions,
    rendering: RenderOptions,
) -> Exit | None:
    """Write a start down: a script, containers, units of systemd, objects of Kubernetes.

    Without --hardware it is the start that `sndr launch` or `sndr run` would make here, with this machine's
    GPUs by UUID and its files; with it nothing of this machine is in it, and the model is fetched there.
    """
    with find_or_start() as hold:
        presets = {item.preset.id for item in hold.client.get("/v1/presets", PresetPage).presets}
        if wanted in presets:
            launch = options.request(model).model_copy(update={"preset": wanted})
        else:
            launch = options.request(wanted)
        write_down(out, hold.client, rendering, launch, target)
    return None


def write_down(
    out: Output, client: ControlClient, options: RenderOptions, launch: LaunchRequest, target: str
) -> None:
    """Render a start, and print it or write it into the folder that was named. Raises HostError."""
    made = client.post("/v1/render", Rendering, options.request(launch, target))
    if options.output is None:
        out.result(made, made.files[0].text.rstrip("\n"))
        more = len(made.files) - 1
        if more:
            out.note(f"\n{more} more files go with it; --output FOLDER writes all of them.")
        for finding in made.findings:
            for line in finding_lines(finding):
                out.note(line)
        return
    folder = options.output.absolute()
    _write(folder, made.files, overwrite=options.overwrite)
    out.result(
        {**made.model_dump(mode="json", exclude={"files"}), "folder": str(folder)}, _lines(made, folder)
    )


def _lines(made: Rendering, folder: Path) -> list[str]:
    shown = [file for file in made.files if file.about]
    rest = len(made.files) - len(shown)
    width = max(len(file.name) for file in shown)
    return [
        f"{made.title} for {made.target.value} is in {folder}:",
        *(f"  {file.name.ljust(width)}  {file.about}" for file in shown),
        *([f"  and {rest} files of the overlay"] if rest else []),
        *([f"Check: {made.check}"] if made.check else []),
        f"Start: {made.start}",
        f"Stop:  {made.stop}",
        *(line for finding in made.findings for line in finding_lines(finding)),
    ]


def _write(folder: Path, files: tuple[RenderedFile, ...], *, overwrite: bool) -> None:
    """Write all files; those of an earlier rendering that are not needed any more go.

    Raises HostError(conflict) before anything is written when a file was changed by somebody, and what
    writing raises.
    """
    before = _record(folder)
    names = {file.name for file in files}
    for name in names:
        place = PurePosixPath(name)
        if place.is_absolute() or ".." in place.parts:
            raise HostError(
                Reason.INTERNAL, f"{name} is no name of a file in a folder.", evidence={"name": name}
            )
    changed = [] if overwrite else sorted(_changed(folder, files, before))
    if changed:
        raise HostError(
            Reason.CONFLICT,
            f"{folder} has files that would be lost: {', '.join(changed[:5])}. Nothing was written.",
            cause="They were changed since they were written, or are not from here.",
            fix=Fix(text="Name another folder, or give --overwrite."),
            evidence={"folder": str(folder), "files": changed},
        )
    kept = {file.name for file in files if file.keep and (folder / file.name).exists()}
    for file in files:
        if file.name not in kept:
            mode = 0o600 if file.keep else 0o755 if file.executable else 0o644
            atomic_file.write(folder / file.name, file.text, mode)
    for name in set(before) - names:
        if _digest_of(folder / name) == before[name]:
            (folder / name).unlink(missing_ok=True)
    record = {file.name: _digest(file.text.encode()) for file in files if not file.keep}
    atomic_file.write(folder / _RECORD, json.dumps(record, indent=1) + "\n", 0o644)


def _changed(folder: Path, files: tuple[RenderedFile, ...], before: Mapping[str, str]) -> list[str]:
    """Files there that this would overwrite and that are not as an earlier rendering wrote them."""
    found = []
    for file in files:
        now = None if file.keep else _digest_of(folder / file.name)
        if now is not None and now not in {before.get(file.name), _digest(file.text.encode())}:
            found.append(file.name)
    return found


def _record(folder: Path) -> dict[str, str]:
    """What an earlier rendering wrote; nothing where there was none, or where its record cannot be read."""
    try:
        known = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(known, dict):
        return {}
    # A record is a file like any other: it must not make us remove something outside of the folder.
    return {
        name: digest
        for name, digest in known.items()
        if isinstance(digest, str) and not os.path.isabs(name) and ".." not in PurePosixPath(name).parts
    }


def _digest_of(path: Path) -> str | None:
    """The digest of a file; None where there is none, an empty word where it cannot be read."""
    try:
        return _digest(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError:
        return ""


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
