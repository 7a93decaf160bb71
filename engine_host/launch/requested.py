"""What a start is asked to have: the request's own settings, or those that its preset resolves to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine_host.launch.resolution import Resolution
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.patches import PatchChoice
from engine_host.protocol.plans import Finding, LaunchRequest, Layer
from engine_host.protocol.presets import ResolvedPreset, ResolvedSetting, SetBy


@dataclass(frozen=True)
class PresetStart:
    """A preset resolved for this machine with the request's settings over it, and the model that it starts.

    `model` is a path, or what the request names; `findings` are what its needs and its files lack; `mark`
    changes when the files that it is made from do.
    """

    resolved: ResolvedPreset
    model: str
    findings: tuple[Finding, ...] = ()
    mark: str = ""


@dataclass(frozen=True)
class RequestedSettings:
    """Settings with the layer that each is from; the planner's own defaults lie below them."""

    overrides: Overrides
    patches: PatchChoice
    layers: Mapping[str, ResolvedSetting] = field(default_factory=dict)

    def set(self, resolved: Resolution, name: str, why: str = "", value: Any = None) -> None:
        """Give a setting what was asked for it, or `value` in its stead; nothing when nothing was asked."""
        requested = getattr(self.overrides, name)
        if requested is None or requested == ():
            return
        told = self.layers.get(name)
        layer = Layer.OVERRIDE if told is None else told.by.layer
        reasons = [why, "" if told is None else _told(told)]
        resolved.set(name, requested if value is None else value, layer, "; ".join(filter(None, reasons)))


def requested_settings(request: LaunchRequest, preset: PresetStart | None) -> RequestedSettings:
    """What a request asks for; a preset's patches hold where the request names none."""
    if preset is None:
        return RequestedSettings(request.overrides, request.patches)
    found = preset.resolved
    patches = found.patches if request.patches == PatchChoice() else request.patches
    return RequestedSettings(found.overrides, patches, {setting.name: setting for setting in found.settings})


def _told(setting: ResolvedSetting) -> str:
    """Where a value is from, and what it overruled."""
    over = [by for by in setting.over[:1] if by.value is not None and by.value != setting.value]
    said = [_place(setting.by), *(f"over {_plain(by.value)} ({by.layer.value})" for by in over)]
    return ", ".join(filter(None, said))


def _place(by: SetBy) -> str:
    return by.file if by.line is None else f"{by.file}, line {by.line}"


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
