"""Checks beyond the schema: the entries of the catalogue fit together, and a card has what it needs."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from engine_host.catalog.entries import Loaded
from engine_host.catalog.index import Catalog
from engine_host.core.did_you_mean import near_names
from engine_host.protocol.base import Severity
from engine_host.protocol.catalog import (
    EntryKind,
    HardwareEntry,
    LayerSettings,
    ModelEntry,
    PresetEngine,
    PresetEntry,
    PresetStatus,
    PresetVariation,
    ProfileEntry,
    Task,
)
from engine_host.protocol.engine_settings.derived import exclusive
from engine_host.protocol.engine_settings.table import Overrides, foreign_to
from engine_host.protocol.language import tr
from engine_host.protocol.presets import CatalogFault

# Weights that each engine reads.
FORMATS = {
    PresetEngine.LLAMA_CPP: "gguf",
    PresetEngine.VLLM: "safetensors",
    PresetEngine.SGLANG: "safetensors",
}

_Check = Callable[[Any, Catalog], Iterable[CatalogFault]]


def usable(loaded: Mapping[EntryKind, Mapping[str, Loaded[Any]]], faults: Iterable[CatalogFault]) -> Catalog:
    """The catalogue of what fits together; whatever does not is a fault, and so is what needs it."""
    all_of = {kind: dict(entries) for kind, entries in loaded.items()}
    found = list(faults)
    while True:
        catalog = _catalog(all_of, ())
        fresh: list[CatalogFault] = []
        dropped = False
        for kind, entries in all_of.items():
            for entry_id, one in list(entries.items()):
                entry_faults = [*_CHECKS[kind](one, catalog)]
                fresh += entry_faults
                if any(fault.severity is Severity.ERROR for fault in entry_faults):
                    found += entry_faults
                    del entries[entry_id]
                    dropped = True
        if not dropped:
            return _catalog(all_of, (*found, *fresh))


def check_one(kind: EntryKind, one: Loaded[Any], catalog: Catalog) -> tuple[CatalogFault, ...]:
    """Return the faults of one entry in this catalogue."""
    return tuple(_CHECKS[kind](one, catalog))


def _catalog(all_of: Mapping[EntryKind, dict[str, Loaded[Any]]], faults: Iterable[CatalogFault]) -> Catalog:
    presets = all_of[EntryKind.PRESET]
    return Catalog(
        engines=all_of[EntryKind.ENGINE],
        hardware=all_of[EntryKind.HARDWARE],
        models=all_of[EntryKind.MODEL],
        profiles=all_of[EntryKind.PROFILE],
        presets={name: one for name, one in presets.items() if isinstance(one.entry, PresetEntry)},
        variations={name: one for name, one in presets.items() if isinstance(one.entry, PresetVariation)},
        faults=tuple(sorted(faults, key=lambda fault: (fault.file, fault.line or 0))),
    )


def _engine(one: Loaded[Any], _catalog: Catalog) -> Iterator[CatalogFault]:
    if one.entry.id not in set(PresetEngine):
        yield one.fault(("id",), tr("there is no such engine"), f"Known: {', '.join(PresetEngine)}.")


def _hardware(one: Loaded[HardwareEntry], catalog: Catalog) -> Iterator[CatalogFault]:
    for other in catalog.hardware.values():
        if other.entry.id < one.entry.id and other.entry.vram_mib.value == one.entry.vram_mib.value:
            for number, name in enumerate(one.entry.names):
                if name in other.entry.names:
                    yield one.fault(
                        ("names", number), tr("{file} has this name and as much memory", file=other.file)
                    )
    yield from _layer(one, one.entry.settings)


def _profile(one: Loaded[ProfileEntry], _catalog: Catalog) -> Iterator[CatalogFault]:
    yield from _layer(one, one.entry.settings)


def _model(one: Loaded[ModelEntry], _catalog: Catalog) -> Iterator[CatalogFault]:
    model = one.entry
    for kind, entries in (("variants", model.variants), ("drafters", model.drafters)):
        ids = [entry.id for entry in entries]
        for number, name in enumerate(ids):
            if name in ids[:number]:
                yield one.fault((kind, number, "id"), tr("this id is there already"), "Give it another.")
    for number, variant in enumerate(model.variants):
        names = [file.name for file in variant.files]
        for place, name in enumerate(names):
            if name in names[:place]:
                yield one.fault(("variants", number, "files", place), tr("this file is there already"))
        yield from _layer(one, variant.settings, ("variants", number))
    trained = _number(model.shape, "max_position_embeddings")
    if trained is not None and model.context > trained and not _scaled(model.shape):
        message = tr("it is more than the {trained} of the shape's max_position_embeddings", trained=trained)
        yield one.fault(("context",), message, "Give what the model was trained for.")
    if (model.shape.get("vision_config") is not None) and "image" not in model.modalities:
        yield one.fault(("modalities",), tr("the shape has a vision tower"), "Add image.", Severity.WARNING)
    if not model.shape:
        message = tr("the shape is not known: whether it fits cannot be computed")
        yield one.fault(("shape",), message, severity=Severity.WARNING)
    yield from _layer(one, model.settings)


def _preset(one: Loaded[Any], catalog: Catalog) -> Iterator[CatalogFault]:
    if isinstance(one.entry, PresetVariation):
        yield from _variation(one, catalog)
        return
    preset: PresetEntry = one.entry
    model = catalog.models.get(preset.model)
    if model is None:
        yield one.fault(
            ("model",),
            tr("there is no model {model}", model=preset.model),
            _one_of(catalog.models, preset.model),
        )
    else:
        yield from _weights(one, preset, model.entry)
    if preset.profile not in catalog.profiles:
        yield one.fault(
            ("profile",),
            tr("there is no profile {profile}", profile=preset.profile),
            _one_of(catalog.profiles, preset.profile),
        )
    if preset.engine not in catalog.engines:
        yield one.fault(("engine",), tr("nothing is known of the engine {engine}", engine=preset.engine))
    for number, name in enumerate(preset.needs.known_good):
        if name not in catalog.hardware:
            message = tr("there is no usable hardware {name}", name=name)
            fix = _one_of(catalog.hardware, name)
            yield one.fault(("needs", "known_good", number), message, fix, Severity.WARNING)
    parallel = preset.settings.tensor_parallel
    if parallel is not None and parallel > max(1, preset.needs.gpus):
        path = ("settings", "tensor_parallel")
        yield one.fault(
            path,
            tr("it needs {gpus} GPUs and uses {parallel}", gpus=preset.needs.gpus, parallel=parallel),
            "Correct one of them.",
        )
    yield from _settings(one, preset.settings, ("settings",))
    yield from _foreign(one, preset.settings, preset.engine, ("settings",))
    yield from _card(one, preset, catalog)


def _weights(one: Loaded[Any], preset: PresetEntry, model: ModelEntry) -> Iterator[CatalogFault]:
    variant = model.variant(preset.variant)
    if variant is None:
        known = ", ".join(each.id for each in model.variants)
        yield one.fault(
            ("variant",),
            tr("{model} has no variant {variant}", model=model.id, variant=preset.variant),
            f"It has {known}.",
        )
    else:
        if variant.format != FORMATS[preset.engine]:
            message = tr("{engine} does not read {format}", engine=preset.engine, format=variant.format)
            yield one.fault(("engine",), message, "Choose another variant or engine.")
        needed, declared = _sm(variant.sm), _sm(preset.needs.sm)
        if needed is not None and (declared is None or declared < needed):
            message = tr("{variant} needs compute capability {sm}", variant=variant.id, sm=variant.sm)
            yield one.fault(("needs", "sm"), message, f"Give at least {variant.sm}.")
    if preset.drafter is not None and preset.drafter not in {each.id for each in model.drafters}:
        yield one.fault(
            ("drafter",), tr("{model} has no drafter {drafter}", model=model.id, drafter=preset.drafter)
        )


def _card(one: Loaded[Any], preset: PresetEntry, catalog: Catalog) -> Iterator[CatalogFault]:
    card = preset.card
    by = {evidence.by for evidence in card.evidence}
    if card.status is not PresetStatus.VERIFIED and not card.caveats:
        message = tr("a preset with the status {status} needs caveats", status=card.status)
        yield one.fault(("card", "caveats"), message, "Say what is not sure.")
    if card.status is PresetStatus.VERIFIED and "us" not in by:
        fix = "Add a measurement, or choose the status reported or computed."
        yield one.fault(("card", "status"), tr("verified needs evidence that this project made"), fix)
    if card.status is PresetStatus.REPORTED and not by:
        yield one.fault(("card", "status"), tr("reported needs evidence"), "Add it, or choose computed.")
    if card.status is PresetStatus.DEPRECATED and card.fallback is None:
        message = tr("a deprecated preset says what to use instead")
        yield one.fault(("card", "fallback"), message, "Name a preset.")
    named: list[tuple[tuple[str | int, ...], str | None]] = [(("card", "fallback"), card.fallback)]
    for number, entry in enumerate(card.do_not_use):
        named.append((("card", "do_not_use", number, "instead"), entry.instead))
    for number, figure in enumerate(card.evidence):
        if figure.hardware is not None and figure.hardware not in catalog.hardware:
            message = tr("there is no usable hardware {hardware}", hardware=figure.hardware)
            place = ("card", "evidence", number, "hardware")
            yield one.fault(place, message, _one_of(catalog.hardware, figure.hardware), Severity.WARNING)
    for path, name in named:
        if name == preset.id:
            yield one.fault(path, tr("it names itself"), "Name another preset.")
        elif name is not None and name not in catalog.presets and name not in catalog.variations:
            # Only a warning: a bad file must not hide those that point to it.
            message = tr("there is no usable preset {name}", name=name)
            yield one.fault(path, message, _one_of(catalog.presets, name), Severity.WARNING)
    if card.fallback != preset.id and _in_circle(preset.id, catalog):
        message = tr("its fallbacks lead back to it")
        yield one.fault(("card", "fallback"), message, "End the chain somewhere.", Severity.WARNING)
    if preset.needs.gpus == 0 and (preset.needs.vram_gib is not None or preset.needs.sm is not None):
        yield one.fault(("needs", "gpus"), tr("it needs no GPU, but VRAM or a compute capability"))
    model = catalog.models.get(preset.model)
    only = {Task.EMBEDDING, Task.RERANK}
    if model is not None and set(model.entry.tasks) <= only and "chat" in card.good_for:
        yield one.fault(("card", "good_for"), tr("{entry} does not chat", entry=model.entry.id))


def _variation(one: Loaded[PresetVariation], catalog: Catalog) -> Iterator[CatalogFault]:
    variation = one.entry
    base = catalog.presets.get(variation.extends)
    if base is None:
        known = variation.extends in catalog.variations
        message = (
            tr("{extends} is a variation itself", extends=variation.extends)
            if known
            else tr("there is no preset {extends}", extends=variation.extends)
        )
        yield one.fault(("extends",), message, _one_of(catalog.presets, variation.extends))
        return
    model = catalog.models.get(base.entry.model)
    if variation.variant is not None and model is not None:
        changed = base.entry.model_copy(update={"variant": variation.variant})
        yield from _weights(one, changed, model.entry)
    if variation.profile is not None and variation.profile not in catalog.profiles:
        yield one.fault(
            ("profile",),
            tr("there is no profile {profile}", profile=variation.profile),
            _one_of(catalog.profiles, variation.profile),
        )
    yield from _settings(one, variation.settings, ("settings",))
    yield from _foreign(one, variation.settings, base.entry.engine, ("settings",))


def _layer(
    one: Loaded[Any], settings: LayerSettings, path: tuple[str | int, ...] = ()
) -> Iterator[CatalogFault]:
    for engine, group in settings.items():
        yield from _settings(one, group, (*path, "settings", engine))
        if engine != "any":
            yield from _foreign(one, group, PresetEngine(engine), (*path, "settings", engine))


def _settings(one: Loaded[Any], settings: Overrides, path: tuple[str | int, ...]) -> Iterator[CatalogFault]:
    for first, second in exclusive():
        if getattr(settings, first) is not None and getattr(settings, second) is not None:
            yield one.fault(
                (*path, second),
                tr("it and {first} say the same thing", first=first),
                f"Give one: {first} or it.",
            )


def _foreign(
    one: Loaded[Any], settings: Overrides, engine: PresetEngine, path: tuple[str | int, ...]
) -> Iterator[CatalogFault]:
    """Settings that mean nothing to the engine that they are for: no start of it would take them."""
    for name in foreign_to(engine):
        if getattr(settings, name) is not None:
            yield one.fault((*path, name), tr("{engine} has no such setting", engine=engine), "Remove it.")


def _in_circle(preset_id: str, catalog: Catalog) -> bool:
    seen: set[str] = set()
    name: str | None = preset_id
    while name is not None and name in catalog.presets:
        if name in seen:
            return name == preset_id
        seen.add(name)
        name = catalog.presets[name].entry.card.fallback
    return False


def _sm(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    major, _, minor = text.partition(".")
    return int(major), int(minor)


def _number(shape: Mapping[str, Any], key: str) -> int | None:
    inner = shape.get("text_config")
    value = inner.get(key, shape.get(key)) if isinstance(inner, dict) else shape.get(key)
    return value if isinstance(value, int) else None


def _scaled(shape: Mapping[str, Any]) -> bool:
    inner = shape.get("text_config")
    text = {**shape, **inner} if isinstance(inner, dict) else shape
    return bool(text.get("rope_scaling"))


def _one_of(known: Mapping[str, Any], asked: str) -> str:
    if near := near_names(asked, known, 3):
        return tr("Did you mean {near}?", near=" or ".join(near))
    return f"Known: {', '.join(sorted(known))}." if len(known) <= 40 else "See the list."


_CHECKS: dict[EntryKind, _Check] = {
    EntryKind.ENGINE: _engine,
    EntryKind.HARDWARE: _hardware,
    EntryKind.MODEL: _model,
    EntryKind.PROFILE: _profile,
    EntryKind.PRESET: _preset,
}
