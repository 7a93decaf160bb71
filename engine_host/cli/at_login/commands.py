"""`sndr autostart`: the window at login, or the host alone as a service of systemd."""

import click

from engine_host.cli.output import Exit, Output, command
from engine_host.cli.param_types import PresetId
from engine_host.cli.start.host import find_or_start
from engine_host.cli.text.whole_help import WholeHelp
from engine_host.client.at_login.host_unit import HostUnit, read_unit, remove_unit, write_unit
from engine_host.client.at_login.window_entry import WindowEntry, read_entry, remove_entry, write_entry
from engine_host.client.sync import connected
from engine_host.core.errors import HostError
from engine_host.protocol.operations import table as ops


@click.group(cls=WholeHelp, alone="show")
def autostart() -> None:
    """Start the window or the host at login."""


@autostart.command("show")
@command("sndr autostart show")
def show(out: Output) -> Exit | None:
    """Say what starts at login."""
    window, unit = read_entry(), read_unit()
    told = {"window": _window(window), "host": _host(unit)}
    out.result(told, [f"window  {_window_text(window)}", f"host    {_host_text(unit)}"])
    return None


@autostart.command("window")
@click.option("--preset", type=PresetId(), metavar="ID", help="Start this preset with it.")
@click.option("--off", is_flag=True, help="No more.")
@command("sndr autostart window --preset qwen3-4b-16")
def window(out: Output, preset: str | None, off: bool) -> Exit | None:
    """Have the desktop start the window at login (XDG autostart), in the background."""
    if off and preset:
        raise click.UsageError("Give either --preset or --off.")
    if preset:
        # One that is misspelt would be seen to fail only at the next login.
        with find_or_start() as hold:
            preset = hold.client.call(ops.PRESET, id=preset).item.preset.id
    now = remove_entry() if off else write_entry(preset or "")
    out.result(_window(now), f"The window at login: {_window_text(now)}.")
    return None


@autostart.command("host")
@click.option("--off", is_flag=True, help="No more; a host that runs goes on until `sndr quit`.")
@command("sndr autostart host", "sndr autostart host --off")
def host(out: Output, off: bool) -> Exit | None:
    """Have systemd start the host at login, as a service of this user; without a window.

    Where no host runs it is started now. It ends with the last log-out, unless this user lingers
    (`loginctl enable-linger`).
    """
    now = remove_unit() if off else write_unit(start=not _runs())
    out.result(_host(now), f"The host at login: {_host_text(now)}.")
    return None


def _runs() -> bool:
    try:
        with connected():
            return True
    except HostError:
        return False


def _window(entry: WindowEntry) -> dict[str, object]:
    return {"on": entry.on, "preset": entry.preset or None, "file": str(entry.path), "foreign": entry.foreign}


def _window_text(entry: WindowEntry) -> str:
    if not entry.on:
        return "off"
    return f"on{f', with the preset {entry.preset}' if entry.preset else ''} ({entry.path})"


def _host(unit: HostUnit) -> dict[str, object]:
    return {"on": unit.on, "file": str(unit.path), "foreign": unit.foreign}


def _host_text(unit: HostUnit) -> str:
    return f"on ({unit.path})" if unit.on else "off"
