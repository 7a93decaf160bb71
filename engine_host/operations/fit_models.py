"""Models of the catalogue that a question to fit names: a variant, or the one that suits the machine."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from engine_host.catalog.index import Catalog
from engine_host.catalog.needs import capability
from engine_host.core.errors import HostError
from engine_host.fit.estimate import beyond_training, blocker, estimate
from engine_host.fit.report import start_of
from engine_host.fit.start import Device, Model, Start
from engine_host.operations.presets.catalog_models import catalogued
from engine_host.protocol.catalog import ModelEntry, Variant
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.fit import FitRequest, Verdict
from engine_host.protocol.launch.plans import EngineKind

_VERDICTS = (Verdict.FITS, Verdict.TIGHT, Verdict.DOES_NOT_FIT)
_SEPARATORS = re.compile(r"[-_. ]+")


def of_catalogue(catalog: Catalog, wanted: str, bits: float | None) -> Model | None:
    """A model of the catalogue, as `model` or `model/variant`; None for any other name.

    A variant is found in any spelling, `Q4_K_M` for `q4-k-m`. Raises HostError(not_found) for one that is
    not there.
    """
    name, _, variant_id = wanted.partition("/")
    found = catalog.models.get(name)
    if found is None:
        return None
    entry = found.entry
    variant = _called(variant_id, entry) if variant_id else entry.variants[0]
    if variant is None:
        listed = ", ".join(f"{name}/{known.id}" for known in entry.variants)
        raise HostError(
            Reason.NOT_FOUND,
            tr("There is no variant {variant_id} of {entry}.", variant_id=variant_id, entry=entry.title),
            fix=tr("There are {listed}.", listed=listed),
            evidence={"variant": variant_id},
        )
    if variant.bundled is not None and not variant_id:
        return None
    return catalogued(entry, variant, bits)


def spelled(catalog: Catalog, wanted: str) -> str | None:
    """The name in the catalogue that differs in capitals and separators alone; None without one."""
    name, slash, variant = wanted.partition("/")
    found = [known for known in catalog.models if _key(known) == _key(name)]
    return f"{found[0]}{slash}{variant}" if len(found) == 1 and found[0] != name else None


def suited(
    catalog: Catalog, request: FitRequest, model: Model, devices: Sequence[Device], *, cpu: bool
) -> tuple[Model, tuple[str, ...]]:
    """The largest variant that fits, where a question names none, and the names of the others.

    Where none fits it is the smallest; on a processor GGUF files come first, since llama.cpp is faster there.
    """
    found = catalog.models.get(request.model)
    if found is None or model.name.partition("/")[0] != request.model:
        return model, ()
    entry = found.entry
    names = [f"{entry.id}/{variant.id}" for variant in entry.variants]
    ranked = []
    for place, other in enumerate(_able(entry, request, devices)):
        start = start_of(request, other, devices, cpu=cpu)
        if beyond_training(other, start):
            # Which one is meant does not depend on what no engine gives.
            start = replace(start, context=other.context or start.context)
        size = other.weights.loaded(drafting=False)
        try:
            if blocker(other, start) is not None:
                continue
            verdict = _VERDICTS.index(estimate(other, start).verdict)
        except HostError:  # A KV type that its engine does not have.
            continue
        slower = cpu and other.format != "GGUF"
        ranked.append((verdict, slower, size if verdict == len(_VERDICTS) - 1 else -size, place, other))
    if not ranked:
        return model, ()
    chosen = min(ranked, key=lambda one: one[:-1])[-1]
    return chosen, tuple(name for name in names if name != chosen.name)


def others(catalog: Catalog, model: Model, start: Start) -> list[Model]:
    """The other variants of a model that are ways out: lighter ones, or such as the engine reads."""
    name, _, variant_id = model.name.partition("/")
    found = catalog.models.get(name)
    variant = found.entry.variant(variant_id) if found is not None else None
    if found is None or variant is None:
        return []
    loaded = model.weights.loaded(drafting=False)
    reads = "gguf" if start.engine is EngineKind.LLAMA_CPP else "safetensors"
    listed = []
    for other in found.entry.variants:
        if other.id == variant.id or not _runs_on(other, start.devices):
            continue
        known = catalogued(found.entry, other, None)
        if known.weights.loaded(drafting=False) < loaded or (variant.format != reads == other.format):
            listed.append(known)
    return listed


def _able(entry: ModelEntry, request: FitRequest, devices: Sequence[Device]) -> Iterable[Model]:
    """The variants that the engine that is asked for reads and the devices compute."""
    for variant in entry.variants:
        gguf = variant.format == "gguf"
        if request.engine is not EngineKind.AUTO and (request.engine is EngineKind.LLAMA_CPP) is not gguf:
            continue
        if _runs_on(variant, devices):
            yield catalogued(entry, variant, request.bits)


def _runs_on(variant: Variant, devices: Sequence[Device]) -> bool:
    oldest = min((capability(one.sm) for one in devices if one.sm), default=None)
    return oldest is None or capability(variant.sm or "0.0") <= oldest


def _called(variant_id: str, entry: ModelEntry) -> Variant | None:
    same = (one for one in entry.variants if _key(one.id) == _key(variant_id))
    return entry.variant(variant_id) or next(same, None)


def _key(name: str) -> str:
    return _SEPARATORS.sub("", name.lower())
