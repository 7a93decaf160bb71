"""`sndr telemetry`: traces of GPUs, recorded and played."""

import time
from pathlib import Path

import click

from engine_host.cli.output import Exit, Output, command, size
from engine_host.cli.param_types import FiniteRange
from engine_host.cli.settings import put_setting
from engine_host.cli.start.host import connected
from engine_host.cli.telemetry.recording import record
from engine_host.cli.text.chosen_host import chosen_host
from engine_host.cli.text.tables import table
from engine_host.cli.text.whole_help import WholeHelp
from engine_host.client.energy_words import energy_text
from engine_host.core.gpu_trace.format import check
from engine_host.core.outside import files
from engine_host.core.sizes import duration
from engine_host.protocol.host import RECORDED
from engine_host.protocol.operations import table as ops
from engine_host.protocol.telemetry import EnergyQuery, EnergySource

_SETTING = "host.gpu_trace"


@click.group(cls=WholeHelp, alone="memory")
def telemetry() -> None:
    """Say who holds memory and what energy was used; record what the GPUs do, and play such a record."""


@telemetry.command("record")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--seconds", type=FiniteRange(1, 31 * 86400), help="Without it until Ctrl+C.")
@click.option(
    "--interval",
    type=FiniteRange(0.1, 3600),
    default=0.5,
    show_default=True,
    help="Seconds between two moments.",
)
@click.option("--no-processes", is_flag=True, help="Leave out who holds memory: names and pids.")
@command("sndr telemetry record flight.jsonl --seconds 60")
def record_command(
    out: Output, file: Path, seconds: float | None, interval: float, no_processes: bool
) -> Exit | None:
    """Record the GPUs of this host into FILE, until Ctrl+C: load, memory, power, heat, clocks, holders.

    FILE is of JSON lines and for you to share: it has no UUIDs, no name of the machine and no texts. It is
    never written over one that is there.
    """
    with connected() as client:
        told = f"Recording into {file}" + (f" for {duration(seconds)}." if seconds else "; Ctrl+C ends.")
        made = record(
            client, file, seconds, interval, processes=not no_processes, begun=lambda: out.note(told)
        )
    out.result(
        made.record(),
        [
            f"{made.moments:,} moments of {made.gpus} GPU(s), {duration(made.seconds)}, {size(made.size)}.",
            f"sndr telemetry play {file}",
        ],
    )
    return None


@telemetry.command("check")
@click.argument("file", type=click.Path(path_type=Path))
@command("sndr telemetry check flight.jsonl")
def check_command(out: Output, file: Path) -> Exit | None:
    """Read the whole of FILE and say what it holds, or why it cannot be played."""
    head, moments, seconds = check(file)
    names = ", ".join(gpu.name for gpu in head.gpus)
    day = time.strftime("%Y-%m-%d %H:%M", time.localtime(head.recorded_at))
    out.result(
        {**head.model_dump(mode="json"), "moments": moments, "seconds": seconds},
        [
            f"{names}",
            f"{moments:,} moments in {duration(seconds)}, recorded {day}, version {head.sndr_gpu_trace}",
        ],
    )
    return None


@telemetry.command("memory")
@command("sndr telemetry memory")
def memory(out: Output) -> Exit | None:
    """Say who holds the memory of the GPUs and RAM; engines by their parts, as they print them."""
    with connected() as client:
        page = client.call(ops.MEMORY)
    lines: list[str] = []
    for device in page.devices:
        mark = f" ({RECORDED})" if device.recorded else ""
        lines.append(f"{device.name}{mark}: {size(device.used)} of {size(device.total)} used")
        for user in device.users:
            lines.append(f"  {user.name} ({user.pid}): {size(user.memory)}")
            lines += [f"    {part.name}: {size(part.memory)}" for part in user.parts]
        lines.append(f"  others: {size(device.rest)}")
    out.result(page, lines)
    return None


@telemetry.command("energy")
@click.option(
    "--minutes",
    type=FiniteRange(1, 31 * 1440),
    default=60,
    show_default=True,
    help="Back from now.",
)
@command("sndr telemetry energy --minutes 60")
def energy(out: Output, minutes: float) -> Exit | None:
    """Say how much energy the GPUs took, idle or not, and for a thousand generated tokens.

    By the GPU's own counter where it has one; else its power is summed up, and that is said.
    """
    with connected() as client:
        page = client.call(ops.ENERGY, EnergyQuery(since=time.time() - 60 * minutes))
    rows = [
        (
            f"{gpu.name}{f' ({RECORDED})' if gpu.recorded else ''}",
            energy_text(gpu.joules),
            "its counter" if gpu.source is EnergySource.COUNTER else "power summed up",
            duration(gpu.seconds),
        )
        for gpu in page.gpus
    ]
    lines = (
        table(("GPU", "energy", "by", "measured for"), rows)
        if rows
        else ["No GPU tells its energy or power."]
    )
    if page.per_thousand is not None:
        lines += [
            "",
            f"{energy_text(page.per_thousand)} for 1,000 tokens of {page.generated_tokens:,}, idle included",
        ]
    out.result(page, lines)
    return None


@telemetry.command("play")
@click.argument("file")
@command("sndr telemetry play flight.jsonl")
def play(out: Output, file: str) -> Exit | None:
    """Play FILE, again and again, beside what is measured; it goes on until `sndr telemetry stop`.

    Its figures are shown as recorded, not of this machine. No start, fit, alert or measurement counts with
    them. With `sndr --host NAME` the file is one of that machine.
    """
    # The host may have been started in another folder.
    named = file if chosen_host() else str(files.expanded(file).absolute())
    put_setting(_SETTING, named)
    out.result(
        {"file": named, "playing": True},
        [f"{named} plays: {RECORDED}. `sndr top` and Monitor show it.", "sndr telemetry stop"],
    )
    return None


@telemetry.command("stop")
@command("sndr telemetry stop")
def stop(out: Output) -> Exit | None:
    """Play no trace any more; what it showed stays in the graphs of the past, marked as recorded."""
    put_setting(_SETTING, None)
    out.result({"file": None, "playing": False}, "No trace is played.")
    return None
