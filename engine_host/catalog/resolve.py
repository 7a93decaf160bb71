"""A preset resolved through its layers, from the engine's defaults to overrides, each value with its file."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine_host.catalog.entries import Loaded
from engine_host.catalog.index import Catalog
from engine_host.catalog.limits import MTP, Bound, attention_heads, conflicts, described
from engine_host.catalog.needs import Card, card_of, findings
from engine_host.core.errors import HostError
from engine_host.core.findings.table import finding
from engine_host.protocol.catalog import (
    HardwareEntry,
    LayerSettings,
    Limit,
    ModelEntry,
    PresetEngine,
    PresetEntry,
    Variant,
)
from engine_host.protocol.engine_settings.table import Overrides, foreign_to
from engine_host.protocol.engine_settings.variables import merged
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import Finding, Layer
from engine_host.protocol.presets import ResolvedPreset, ResolvedSetting, SetBy, SettingConflict

# Settings that layers add to; every other one they replace.
_ADDED = frozenset({"extra_arguments", "variables"})


@dataclass(frozen=True, slots=True)
class UserValues:
    """The person's settings that apply to every start; `keys` are their names in the settings file."""

    file: str
    values: Mapping[str, Any]
    keys: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TargetHardware:
    """The hardware that a preset is resolved for: `count` GPUs of one kind, or none with a count of 0.

    Without `hardware` the catalogue does not know them, and `card` holds what the driver tells.
    """

    hardware: str | None
    count: int = 1
    card: Card | None = None


def resolve(
    catalog: Catalog,
    preset_id: str,
    machine: TargetHardware | None = None,
    user: UserValues | None = None,
    overrides: Overrides | None = None,
) -> ResolvedPreset:
    """Resolve a preset through its layers; conflicts are part of the result. Raises HostError(not_found)."""
    preset = catalog.preset(preset_id)
    model = catalog.models[preset.model]
    gpu = None if machine is None or machine.hardware is None else catalog.gpu(machine.hardware)
    card = card_of(gpu.entry) if gpu is not None else machine.card if machine is not None else None
    stack: dict[str, list[SetBy]] = {}
    for name, by in _assignments(catalog, preset, preset_id, gpu, user, overrides or Overrides()):
        stack.setdefault(name, []).append(by)
    settings = tuple(_winner(name, stack[name]) for name in Overrides.model_fields if name in stack)
    count = None if machine is None else machine.count
    bounds = [*_bounds(catalog, preset, preset_id, gpu, count)]
    heads = _heads(model)
    return ResolvedPreset(
        preset=preset,
        model=model.entry,
        engine=preset.engine,
        hardware=None if gpu is None else gpu.entry.id,
        count=count,
        settings=settings,
        overrides=_as_overrides(settings),
        patches=preset.patches,
        conflicts=tuple(conflicts(settings, bounds, heads)),
        findings=(*findings(preset, card, count), *_overruled(settings)),
    )


def require(resolved: ResolvedPreset) -> ResolvedPreset:
    """The same, if no layers contradict each other.

    Raises HostError(preset_conflict) that names the layers of the first conflict, or of a value that was
    given for this start alone HostError(setting_invalid).
    """
    if not resolved.conflicts:
        return resolved
    first = resolved.conflicts[0]
    given = Layer.OVERRIDE in {first.by.layer, first.limit.layer}
    raise HostError(
        Reason.SETTING_INVALID if given else Reason.PRESET_CONFLICT,
        tr("{preset}: {message}.", preset=resolved.preset.id, message=first.message),
        cause=tr("Because {because}.", because=first.because),
        fix=_conflict_fix(resolved, first),
        evidence={
            "setting": first.settings[0],
            "conflicts": [conflict.model_dump(mode="json") for conflict in resolved.conflicts],
        },
    )


def _conflict_fix(resolved: ResolvedPreset, conflict: SettingConflict) -> Fix:
    """Return the fix of a conflict: change the later of the two values that can be changed."""
    words = ["sndr", "presets", "resolve", resolved.preset.id]
    given = [setting for setting in resolved.settings if setting.by.layer is Layer.OVERRIDE]
    sets = [word for one in given for word in _as_option(one)]
    later = max(conflict.by, conflict.limit, key=lambda by: _ORDER[by.layer])
    if later.layer is Layer.OVERRIDE:
        text = tr("Give another {settings}, or leave it out.", settings=conflict.settings[0])
        return Fix(text=text, command=shlex.join([*words, *sets]))
    if conflict.limit.key == _COUNT and resolved.hardware is not None:
        count = max(resolved.preset.needs.gpus, int(conflict.by.value))
        hardware = ["--hardware", resolved.hardware, "--count", str(count)]
        text = tr("It is for {count} GPUs: ask for so many with --count {count}.", count=count)
        return Fix(text=text, command=shlex.join([*words, *hardware, *sets]))
    text = tr(
        "Change {settings} in the layer {described}.",
        settings=conflict.settings[0],
        described=described(later),
    )
    return Fix(text=text, command=shlex.join([*words, *sets]))


def _as_option(setting: ResolvedSetting) -> Iterator[str]:
    values = setting.by.value if isinstance(setting.by.value, list) else [setting.by.value]
    for value in values:
        yield from ("--set", f"{setting.name}={str(value).lower() if isinstance(value, bool) else value}")


_COUNT = "count"
_ORDER = {layer: number for number, layer in enumerate(Layer)}


def _assignments(
    catalog: Catalog,
    preset: PresetEntry,
    preset_id: str,
    gpu: Loaded[HardwareEntry] | None,
    user: UserValues | None,
    overrides: Overrides,
) -> Iterator[tuple[str, SetBy]]:
    """Everything that the layers say, the weakest first."""
    engine = preset.engine
    if (known := catalog.engines.get(engine)) is not None:
        yield from _file_assignments(known, known.entry.settings, Layer.ENGINE, ("settings",))
    if gpu is not None:
        yield from _layered(gpu, gpu.entry.settings, engine, Layer.HARDWARE)
    model = catalog.models[preset.model]
    yield from _layered(model, model.entry.settings, engine, Layer.MODEL)
    number, variant = _variant(model.entry, preset.variant)
    yield from _layered(model, variant.settings, engine, Layer.MODEL, ("variants", number))
    profile = catalog.profiles[preset.profile]
    yield from _layered(profile, profile.entry.settings, engine, Layer.PROFILE)
    variation = catalog.variations.get(preset_id)
    file = catalog.presets[variation.entry.extends if variation else preset_id]
    yield from _file_assignments(file, file.entry.settings, Layer.PRESET, ("settings",))
    if user is not None:
        for name, value in user.values.items():
            # What is meant for whichever engine may be nothing to one of them.
            if name in foreign_to(engine):
                continue
            key = user.keys.get(name, name)
            yield name, SetBy(layer=Layer.USER, value=value, file=user.file, key=key)
    if variation is not None:
        yield from _file_assignments(variation, variation.entry.settings, Layer.USER, ("settings",))
    for name in Overrides.model_fields:
        value = getattr(overrides, name)
        if value is not None and value != ():
            yield name, SetBy(layer=Layer.OVERRIDE, value=_plain(value), file="", key=name)


def _layered(
    one: Loaded[Any],
    settings: LayerSettings,
    engine: PresetEngine,
    layer: Layer,
    path: tuple[str | int, ...] = (),
) -> Iterator[tuple[str, SetBy]]:
    """A layer's settings: those for whichever engine, then those for this one."""
    if (for_any := settings.get("any")) is not None:
        for name, by in _file_assignments(one, for_any, layer, (*path, "settings", "any")):
            if name not in foreign_to(engine):
                yield name, by
    if (for_this := settings.get(engine.value)) is not None:
        yield from _file_assignments(one, for_this, layer, (*path, "settings", engine.value))


def _file_assignments(
    one: Loaded[Any], settings: Overrides, layer: Layer, path: tuple[str | int, ...]
) -> Iterator[tuple[str, SetBy]]:
    """Yield the settings of a file; a key with null unsets the value of weaker layers."""
    for name in Overrides.model_fields:
        if name in settings.model_fields_set:
            at = (*path, name)
            yield (
                name,
                SetBy(
                    layer=layer,
                    value=_plain(getattr(settings, name)),
                    file=one.file,
                    key=".".join(map(str, at)),
                    line=one.line(*at),
                ),
            )


def _winner(name: str, assignments: Sequence[SetBy]) -> ResolvedSetting:
    *weaker, last = assignments
    value = last.value
    if name in _ADDED:
        value = [word for by in assignments for word in by.value or ()]
    if name == "variables":
        value = list(merged(value))
    return ResolvedSetting(name=name, value=value, by=last, over=tuple(reversed(weaker)))


def _as_overrides(settings: Sequence[ResolvedSetting]) -> Overrides:
    given = {
        setting.name: setting.value
        for setting in settings
        if setting.value is not None and (setting.by.layer is not Layer.ENGINE or setting.name in _ADDED)
    }
    return Overrides.model_validate(given)


def _bounds(
    catalog: Catalog,
    preset: PresetEntry,
    preset_id: str,
    gpu: Loaded[HardwareEntry] | None,
    count: int | None,
) -> Iterator[Bound]:
    """Every limit of the layers, those that follow from facts included."""
    engine = catalog.engines.get(preset.engine)
    model = catalog.models[preset.model]
    number, variant = _variant(model.entry, preset.variant)
    variation = catalog.variations.get(preset_id)
    file = catalog.presets[variation.entry.extends if variation else preset_id]
    profile = catalog.profiles[preset.profile]
    sources: list[tuple[Loaded[Any] | None, Sequence[Limit], Layer, tuple[str | int, ...]]] = [
        (engine, engine.entry.limits if engine else (), Layer.ENGINE, ()),
        (gpu, gpu.entry.limits if gpu else (), Layer.HARDWARE, ()),
        (model, model.entry.limits, Layer.MODEL, ()),
        (model, variant.limits, Layer.MODEL, ("variants", number)),
        (profile, profile.entry.limits, Layer.PROFILE, ()),
        (file, file.entry.limits, Layer.PRESET, ()),
    ]
    for one, limits, layer, path in sources:
        for place, limit in enumerate(limits):
            if one is not None and limit.engine in {None, preset.engine}:
                yield Bound(limit, _at(one, layer, _bounding(limit), (*path, "limits", place)))
    context = Limit(
        setting="context", at_most=model.entry.context, because="the model was trained for no more"
    )
    yield Bound(context, _at(model, Layer.MODEL, model.entry.context, ("context",)))
    if variant.mtp is False or (variant.mtp is None and model.entry.mtp_layers == 0):
        limit = Limit(setting="speculation", none_of=MTP, because="these weights have no MTP head")
        key = ("variants", number, "mtp") if variant.mtp is False else ("mtp_layers",)
        yield Bound(limit, _at(model, Layer.MODEL, 0, key))
    # With no GPU it runs on the processor, which is one device.
    if count is not None:
        limit = Limit(setting="tensor_parallel", at_most=max(count, 1), because=_there_are(count))
        of_gpu = gpu.file if gpu is not None else ""
        yield Bound(limit, SetBy(layer=Layer.HARDWARE, value=count, file=of_gpu, key=_COUNT))


def _there_are(count: int) -> str:
    if not count:
        return "there is no GPU"
    return "there is one such GPU" if count == 1 else f"there are {count} such GPUs"


def _bounding(limit: Limit) -> Any:
    for value in (limit.at_most, limit.at_least, limit.one_of, limit.none_of):
        if value is not None:
            return value
    raise AssertionError("a limit says something")


def _heads(model: Loaded[ModelEntry]) -> SetBy | None:
    found = attention_heads(model.entry.shape)
    return None if found is None else _at(model, Layer.MODEL, found[0], found[1])


def _at(one: Loaded[Any], layer: Layer, value: Any, path: tuple[str | int, ...]) -> SetBy:
    return SetBy(layer=layer, value=value, file=one.file, key=".".join(map(str, path)), line=one.line(*path))


def _variant(model: ModelEntry, variant_id: str) -> tuple[int, Variant]:
    return next((number, one) for number, one in enumerate(model.variants) if one.id == variant_id)


def _overruled(settings: Sequence[ResolvedSetting]) -> Iterator[Finding]:
    """A person's general settings can overrule a preset without their noticing."""
    for setting in settings:
        beaten = next((by for by in setting.over if by.layer is Layer.PRESET), None)
        if setting.by.layer is Layer.USER and beaten is not None and beaten.value != setting.value:
            yield finding(
                "preset.overruled",
                fix=_unset_fix(setting.by),
                setting=setting.name,
                value=setting.value,
                file=setting.by.file,
                of_preset=beaten.value,
            )


def _unset_fix(by: SetBy) -> Fix:
    """Return the fix that unsets a value of the person's, so that the preset's holds."""
    if by.line is None:
        return Fix(text="Unset it to have the preset's.", command=f"sndr settings unset {by.key}")
    return Fix(
        text=tr("Remove it from {file}, line {line}, to have the preset's.", file=by.file, line=by.line)
    )


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
