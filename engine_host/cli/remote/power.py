"""`sndr gpu`: the GPUs; `sndr gpu power`, `sndr host power`: their limits, set where that is permitted."""

import click

from engine_host.cli.output import CODES, Exit, Output, command, size
from engine_host.cli.remote.connecting import connect
from engine_host.cli.remote.install import change_lines
from engine_host.cli.start.host import find_or_start
from engine_host.cli.status import gpu_text, no_gpu_lines
from engine_host.cli.text.job_progress import begin
from engine_host.cli.text.plan import finding_lines
from engine_host.cli.text.tables import table
from engine_host.cli.text.whole_help import WholeHelp
from engine_host.protocol.base import Severity
from engine_host.protocol.host import Gpu
from engine_host.protocol.language import formed
from engine_host.protocol.operations import services as ops
from engine_host.protocol.operations.table import HOST
from engine_host.protocol.remote.hosts import THIS_MACHINE
from engine_host.protocol.remote.services import PowerDone, PowerPage, PowerPlan, SetPower

_ARGUMENTS = (
    click.argument("gpu", required=False),
    click.argument("watts", type=click.IntRange(1, 10_000), required=False),
    click.option("--reset", is_flag=True, help="Set the default of the driver again."),
    click.option("--dry-run", is_flag=True, help="Print what would change, and change nothing."),
)


@click.group(cls=WholeHelp)
def gpu() -> None:
    """Look after the GPUs of this machine."""


@gpu.command("list")
@command("sndr gpu list")
def gpu_list(out: Output) -> Exit | None:
    """List the GPUs: memory, load, heat and power, as the driver tells them now."""
    with find_or_start() as hold:
        host = hold.client.call(HOST)
    lines = no_gpu_lines(host.no_gpu) or [f"GPUs: {gpu_text(host)}."]
    if host.gpus:
        heads = ("GPU", "name", "memory", "load", "heat", "power", "compute capability")
        lines = table(heads, [_row(one) for one in host.gpus])
        lines += ["", f"Driver {host.driver}, CUDA {host.cuda}."] if host.driver else []
    found = [one.model_dump(mode="json") for one in host.gpus]
    why = None if host.no_gpu is None else host.no_gpu.model_dump(mode="json")
    out.result({"gpus": found, "driver": host.driver, "cuda": host.cuda, "no_gpu": why}, lines)
    return None


def _row(one: Gpu) -> tuple[str, ...]:
    """A GPU in words; a dash stands for what the driver does not tell."""
    heat = "-" if one.temperature is None else f"{one.temperature} °C"
    load = "-" if one.utilization is None else formed(one.utilization, ".0%")
    power = "-" if one.power is None else f"{one.power:.0f} W"
    if one.power is not None and one.power_limit is not None:
        power = f"{one.power:.0f} of {one.power_limit:.0f} W"
    memory = f"{size(one.memory_used)} of {size(one.memory_total)}"
    return str(one.index), one.name, memory, load, heat, power, one.compute_capability or "-"


@gpu.command("power")
@_ARGUMENTS[0]
@_ARGUMENTS[1]
@_ARGUMENTS[2]
@_ARGUMENTS[3]
@command("sndr gpu power", "sndr gpu power 0 250", "sndr gpu power 0 --reset")
def gpu_power(out: Output, gpu: str | None, watts: int | None, reset: bool, dry_run: bool) -> Exit | None:
    """Print the power limits, or set that of GPU (a number or UUID) to WATTS; it is read back.

    It is set where you are root, or sudo runs nvidia-smi without a password; else the command is named that
    an administrator runs.
    """
    return _power(out, THIS_MACHINE, gpu, watts, reset, dry_run)


@click.command("power")
@click.argument("name")
@_ARGUMENTS[0]
@_ARGUMENTS[1]
@_ARGUMENTS[2]
@_ARGUMENTS[3]
@command("sndr host power gpu 0 250")
def host_power(
    out: Output, name: str, gpu: str | None, watts: int | None, reset: bool, dry_run: bool
) -> Exit | None:
    """Print the power limits of NAME, or set that of GPU (a number or UUID) to WATTS; it is read back.

    It is set where that user is root, or sudo runs nvidia-smi without a password.
    """
    return _power(out, name, gpu, watts, reset, dry_run)


def _power(
    out: Output, name: str, gpu: str | None, watts: int | None, reset: bool, dry_run: bool
) -> Exit | None:
    if gpu is not None and (watts is None) is not reset:
        raise click.UsageError("A limit is set with WATTS, or with --reset for the default: one of both.")
    if gpu is None and (reset or dry_run):
        raise click.UsageError("Name the GPU whose limit is meant, by its number or UUID.")
    with find_or_start() as hold:
        if name != THIS_MACHINE:
            connect(hold.client, name, out)
        if gpu is None:
            page = hold.client.call(ops.POWER, name=name)
            out.result(page, _lines(page))
            return None
        asked = SetPower(gpu=gpu, watts=watts)
        plan = hold.client.call(ops.PLAN_POWER, asked, name=name)
        if dry_run:
            out.result(plan, _plan_lines(plan))
            stopped = next((one for one in plan.findings if one.severity is Severity.ERROR), None)
            return None if stopped is None else CODES[stopped.reason] if stopped.reason else Exit.FAILED
        # What stops it is said once, as the error that it becomes.
        left = tuple(one for one in plan.findings if one.severity is not Severity.ERROR)
        for line in _plan_lines(plan.model_copy(update={"findings": left})):
            out.note(line)
        done = PowerDone.model_validate(
            begin(hold.client, lambda: hold.client.call(ops.SET_POWER, asked, name=name), out).result
        )
    said = "is already" if done.unchanged else "is now"
    which = f"GPU {done.gpu.index} ({done.gpu.name})"
    out.result(done, f"The power limit of {which} {said} {_watts(done.gpu.limit)}.")
    return None


def _lines(page: PowerPage) -> list[str]:
    if not page.gpus:
        return [f"No power limit can be read: {page.why}."]
    rows = [
        (
            str(one.index),
            one.name,
            *map(_watts, (one.draw, one.limit, one.default, one.minimum, one.maximum)),
        )
        for one in page.gpus
    ]
    lines = table(("GPU", "name", "draws", "limit", "default", "min", "max"), rows)
    return lines if page.permitted else [*lines, f"You may not set them: {page.why}."]


def _plan_lines(plan: PowerPlan) -> list[str]:
    return [*change_lines(plan.changes), *(line for one in plan.findings for line in finding_lines(one))]


def _watts(watts: float | None) -> str:
    return "not measured" if watts is None else f"{watts:.0f} W"
