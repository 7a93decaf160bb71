"""The settings of a plan as people read them, each with the layer that set it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import LaunchPlan
from engine_host.protocol.presets import ResolvedPreset
from sndr_gui.kit.setting_words import word_of

NOT_SET, NO_VALUES = tr("not set"), tr("none")


@dataclass(frozen=True)
class SettingRow:
    """One resolved setting of the plan, as shown."""

    name: str
    value: str
    layer: str
    why: str


def setting_rows(plan: LaunchPlan | None) -> tuple[SettingRow, ...]:
    """The plan's settings, each with the layer that set it."""
    settings = plan.settings if plan else ()
    return tuple(
        SettingRow(
            entry.name.replace("_", " "), shown_value(entry.value), word_of(entry.layer.value), entry.why
        )
        for entry in settings
    )


def resolved_rows(resolved: ResolvedPreset) -> tuple[SettingRow, ...]:
    """A preset's settings before there is a plan, each with the file and the line that set it."""
    rows = []
    for setting in resolved.settings:
        by = setting.by
        file = PurePath(by.file).name
        where = f"{file}:{by.line}" if by.line is not None else file
        if setting.over:
            where = tr("{where}, over {layer}", where=where, layer=word_of(setting.over[0].layer.value))
        name = setting.name.replace("_", " ")
        rows.append(SettingRow(name, shown_value(setting.value), word_of(by.layer.value), where))
    return tuple(rows)


def planned_value(plan: LaunchPlan | None, name: str) -> object:
    """Return the plan's value of a setting; None where it says nothing."""
    settings = plan.settings if plan else ()
    return next((setting.value for setting in settings if setting.name == name), None)


def planned(plan: LaunchPlan | None, name: str) -> str:
    """The same in words; empty where the plan has no such setting."""
    settings = plan.settings if plan else ()
    return next((shown_value(setting.value) for setting in settings if setting.name == name), "")


def shown_value(value: object) -> str:
    """A setting's value as a person reads it."""
    if value is None:
        return NOT_SET
    if isinstance(value, bool):
        return tr("yes") if value else tr("no")
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or NO_VALUES
    return str(value)
