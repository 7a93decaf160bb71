"""`sndr presets vary` and `sndr presets set`: a variation of one's own, and single values in it."""

import json
from collections.abc import Sequence
from typing import Any

import click

from engine_host.cli.output import Exit, Output, command
from engine_host.cli.param_types import PresetId
from engine_host.cli.presets.commands import fault_lines, refused
from engine_host.cli.start.host import find_or_start
from engine_host.client.sync import ControlClient
from engine_host.core.did_you_mean import near_names
from engine_host.core.errors import HostError
from engine_host.protocol.catalog import PresetEntry, PresetVariation
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.operations import table as ops
from engine_host.protocol.presets import (
    CatalogFault,
    EditPreset,
    EntryOrigin,
    LintPreset,
    PresetChange,
    SavePreset,
)


@click.command("vary")
@click.argument("preset")
@click.argument("new_id", metavar="ID", type=PresetId())
@click.option("--title", help="What it is called in lists (default: its id).")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="What is different.")
@click.option("--dry-run", is_flag=True, help="Show the file and save nothing.")
@command("sndr presets vary qwen3-8b-k8v4-24 coder --set context=32768")
def vary(
    out: Output, preset: str, new_id: str, title: str | None, settings: tuple[str, ...], dry_run: bool
) -> Exit | None:
    """Make a preset of your own with this ID that says only what is different from PRESET."""
    entry = {"format": 1, "id": new_id, "title": title or new_id, "extends": preset}
    changes = [PresetChange(path=(name,), value=value) for name, value in entry.items()]
    changes += [_change(setting) for setting in settings]
    with find_or_start() as hold:
        hold.client.call(ops.PRESET_FILE, id=preset)
        return _apply(out, hold.client, new_id, "", None, tuple(changes), dry_run)


@click.command("set")
@click.argument("preset")
@click.argument("values", nargs=-1, metavar="[NAME=VALUE]…")
@click.option("--unset", multiple=True, metavar="NAME", help="Unset a value, so that the layers below apply.")
@click.option("--dry-run", is_flag=True, help="Show the difference and save nothing.")
@command("sndr presets set coder context=32768", "sndr presets set coder --unset context")
def set_values(
    out: Output, preset: str, values: tuple[str, ...], unset: tuple[str, ...], dry_run: bool
) -> Exit | None:
    """Change values in a PRESET of your own; comments and everything else in its file stay.

    NAME is a setting, such as context, or a place in the file, such as card.status or needs.gpus.
    """
    changes = (
        *(_change(value) for value in values),
        *(PresetChange(path=_path(name), remove=True) for name in unset),
    )
    if not changes:
        raise click.UsageError("Give NAME=VALUE or --unset NAME.")
    with find_or_start() as hold:
        file = hold.client.call(ops.PRESET_FILE, id=preset)
        if file.origin is EntryOrigin.PROGRAM:
            raise HostError(
                Reason.CONFLICT,
                tr("{preset} comes with the program and cannot be changed.", preset=preset),
                cause="An update of the program replaces its presets, and a change would be lost.",
                fix=Fix(
                    text="Make a preset of your own that extends it.",
                    command=f"sndr presets vary {preset} my-{preset}",
                ),
                evidence={"id": preset},
            )
        for name in unset:
            _check_set(hold.client, preset, file.text, name)
        return _apply(out, hold.client, preset, file.text, file.digest, changes, dry_run)


def _check_name(name: str) -> None:
    """Raise click.UsageError, with the nearest, for what is no setting and no key of a preset's file."""
    keys = {*PresetEntry.model_fields, *PresetVariation.model_fields}
    if name in keys:
        return
    near = near_names(name, keys | set(Overrides.model_fields), 3)
    meant = (
        f"Did you mean {' or '.join(near)}?" if near else f"Settings: {', '.join(Overrides.model_fields)}."
    )
    raise click.UsageError(f"There is no setting {name}, and no key of a preset is called so. {meant}")


def _check_set(client: ControlClient, preset: str, text: str, name: str) -> None:
    """Raise HostError(setting_invalid) when a text does not set this, so that nothing can be taken out."""
    request = EditPreset(text=text, changes=(PresetChange(path=_path(name), remove=True),))
    if client.call(ops.EDIT_PRESET, request).text == text:
        raise HostError(
            Reason.SETTING_INVALID,
            tr("{name} is not set in {preset}. Nothing was saved.", name=name, preset=preset),
            cause="What is in force for it comes from another layer, or is its default.",
            fix=Fix(text="See what is set, and by which layer.", command=f"sndr presets show {preset}"),
            evidence={"id": preset, "name": name},
        )


def _apply(
    out: Output,
    client: ControlClient,
    preset: str,
    text: str,
    digest: str | None,
    changes: tuple[PresetChange, ...],
    dry_run: bool,
) -> Exit | None:
    request = EditPreset(text=text, changes=changes)
    changed = client.call(ops.EDIT_PRESET, request).text
    checked = client.call(ops.LINT_PRESET, LintPreset(text=changed, id=preset))
    if checked.preset is None:
        return refused(out, [_as_given(fault, text, changes) for fault in checked.faults])
    if dry_run:
        lines = [*checked.diff.splitlines(), *fault_lines(checked.faults)]
        out.result(checked, lines or ["Nothing would change."])
        return None
    saved = client.call(ops.SAVE_PRESET, SavePreset(text=changed, digest=digest), id=preset)
    out.result(saved, [f"{saved.id} is saved ({saved.file}).", *fault_lines(saved.faults)])
    return None


def _as_given(fault: CatalogFault, text: str, changes: Sequence[PresetChange]) -> CatalogFault:
    """Return a fault in what was typed without a place: its line stands in no file, as nothing was saved."""
    typed = {".".join(change.path) for change in changes if not change.remove}
    given = any(f"{fault.key}.".startswith(f"{one}.") or one.startswith(f"{fault.key}.") for one in typed)
    return fault.model_copy(update={"file": "", "line": None}) if given or not text else fault


def _path(name: str) -> tuple[str, ...]:
    return ("settings", name) if name in Overrides.model_fields else tuple(name.split("."))


def _change(assignment: str) -> PresetChange:
    name, equals, value = assignment.partition("=")
    if not equals or not all(_path(name)):
        raise click.UsageError(f"Give NAME=VALUE, such as context=8192; not {assignment!r}.")
    _check_name(_path(name)[0])
    return PresetChange(path=_path(name), value=_value(value))


def _value(text: str) -> Any:
    """A number, true, false, null or a JSON list as such; every other text as it is."""
    try:
        return json.loads(text)
    except ValueError:
        return text
