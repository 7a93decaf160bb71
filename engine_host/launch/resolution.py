"""Settings resolved layer by layer, each value remembering which layer set it and why."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine_host.protocol.engine_settings.table import Overrides, settings_of
from engine_host.protocol.launch.consents import ConsentNeeded
from engine_host.protocol.launch.plans import Finding, LaunchRequest, Layer, Setting
from engine_host.protocol.patches import PatchChoice
from engine_host.protocol.presets import ResolvedPreset, ResolvedSetting, SetBy

_ORDER = list(Layer)


@dataclass(frozen=True)
class PresetStart:
    """A preset resolved for this machine with the request's settings over it, and the model that it starts.

    `model` is a path, or what the request names; `findings` are what its needs and its files lack; `mark`
    changes when the files that it is made from do. `consent` is what a person has to consent to first.
    """

    resolved: ResolvedPreset
    model: str
    findings: tuple[Finding, ...] = ()
    mark: str = ""
    consent: ConsentNeeded | None = None


@dataclass(frozen=True)
class RequestedSettings:
    """Settings with the layer that each is from; the planner's own defaults lie below them."""

    overrides: Overrides
    patches: PatchChoice
    layers: Mapping[str, ResolvedSetting] = field(default_factory=dict)

    def setting(self, name: str) -> Setting | None:
        """Return the value that is requested for a setting, with its layer; None where there is none."""
        value = getattr(self.overrides, name)
        if value is None or value == ():
            return None
        origin = self.layers.get(name)
        layer = Layer.OVERRIDE if origin is None else origin.by.layer
        value = list(value) if isinstance(value, tuple) else value
        return Setting(name=name, value=value, layer=layer, why="" if origin is None else _origin(origin))


def requested_settings(request: LaunchRequest, preset: PresetStart | None) -> RequestedSettings:
    """Return the settings of a request; a preset's patches hold where the request names none."""
    if preset is None:
        return RequestedSettings(request.overrides, request.patches)
    found = preset.resolved
    patches = found.patches if request.patches == PatchChoice() else request.patches
    return RequestedSettings(found.overrides, patches, {setting.name: setting for setting in found.settings})


class Resolution:
    """The settings of one start; a later layer wins over an earlier one, and a request over the planner."""

    def __init__(self) -> None:
        self._settings: dict[str, Setting] = {}
        self._requested: set[str] = set()
        self._capped: dict[str, Any] = {}

    def add_settings(self, engine: str, requested: RequestedSettings) -> None:
        """Add every setting of an engine: its default, and what is requested over that."""
        for row in settings_of(engine):
            given = requested.setting(row.name)
            if given is not None:
                self._requested.add(row.name)
            elif row.kind != "words":
                given = Setting(name=row.name, value=row.default_of(engine), layer=Layer.ENGINE, why=row.why)
            if given is not None:
                self._settings[row.name] = given

    def set(self, name: str, value: Any, layer: Layer, why: str = "") -> None:
        """Set a value, unless a later layer has already set it, or a request for the same layer."""
        known = self._settings.get(name)
        if known is not None:
            ranks = _ORDER.index(layer), _ORDER.index(known.layer)
            if ranks[0] < ranks[1] or (ranks[0] == ranks[1] and name in self._requested):
                return
        self._settings[name] = Setting(name=name, value=value, layer=layer, why=why)

    def set_given(self, name: str, value: Any, layer: Layer, why: str = "") -> None:
        """Set a value unless it is None, which means that this layer does not say."""
        if value is not None:
            self.set(name, value, layer, why)

    def limit(self, name: str, value: Any, why: str) -> None:
        """Replace a value by what the hardware allows, whichever layer has set it."""
        self._settings[name] = Setting(name=name, value=value, layer=Layer.HARDWARE, why=why)

    def replace(self, name: str, value: Any, why: str = "") -> None:
        """Say the same in another way, and why: who set it stays."""
        known = self._settings[name]
        reasons = "; ".join(filter(None, (why, known.why)))
        self._settings[name] = known.model_copy(update={"value": value, "why": reasons})

    def cap(self, name: str, value: Any, why: str) -> None:
        """Replace a value by the most that has any effect, and remember what was asked for."""
        self._capped[name] = self[name]
        self.limit(name, value, why)

    def asked_beyond(self, name: str) -> Any:
        """Return the value that was asked for where it was capped; None where it was not."""
        return self._capped.get(name)

    def remove(self, name: str) -> None:
        """Remove a setting that means nothing to this start."""
        del self._settings[name]

    def __getitem__(self, name: str) -> Any:
        return self._settings[name].value

    def layer(self, name: str) -> Layer:
        """Return the layer that set a value."""
        return self._settings[name].layer

    def is_requested(self, name: str) -> bool:
        """Return True for a setting that a request or its preset sets."""
        return name in self._requested

    def values(self) -> dict[str, Any]:
        """Return every value by its name."""
        return {name: setting.value for name, setting in self._settings.items()}

    def settings(self) -> tuple[Setting, ...]:
        """Return everything resolved, in the order it was first named."""
        return tuple(self._settings.values())


def _origin(setting: ResolvedSetting) -> str:
    """Return the place that a value is from, and the value that it overruled."""
    over = [by for by in setting.over[:1] if by.value is not None and by.value != setting.value]
    said = [_place(setting.by), *(f"over {_plain(by.value)} ({by.layer.value})" for by in over)]
    return ", ".join(filter(None, said))


def _place(by: SetBy) -> str:
    return by.file if by.line is None else f"{by.file}, line {by.line}"


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
