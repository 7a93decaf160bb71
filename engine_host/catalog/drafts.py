"""A preset that is not saved yet: what is wrong with it, what it would resolve to, how it differs."""

import difflib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine_host.catalog.checks import check_one
from engine_host.catalog.demands import demands
from engine_host.catalog.document import Document
from engine_host.catalog.entries import Loaded, check, fault_of
from engine_host.catalog.index import Catalog
from engine_host.catalog.resolve import resolve
from engine_host.catalog.yaml.file import parse
from engine_host.core.errors import HostError
from engine_host.protocol.base import Severity
from engine_host.protocol.catalog import (
    EntryKind,
    ModelEntry,
    PresetEntry,
    PresetVariation,
    ProfileEntry,
)
from engine_host.protocol.language import tr
from engine_host.protocol.presets import (
    CatalogFault,
    EntryOrigin,
    PresetChange,
    PresetLint,
    ResolvedPreset,
)

# The first key of a file that `sndr presets export` writes.
EXPORTED = "sndr_preset"

Draft = Loaded[PresetEntry] | Loaded[PresetVariation]


def read_draft(text: str, path: Path, file: str) -> Draft | tuple[CatalogFault, ...]:
    """The preset in a text, or what is wrong with it."""
    try:
        document = parse(text, file)
    except HostError as error:
        return (fault_of(error),)
    if EXPORTED in document.data:
        return (_exported(document, file),)
    return check(EntryKind.PRESET, document, path, file, EntryOrigin.USER)


def _exported(document: Document, file: str) -> CatalogFault:
    return CatalogFault(
        severity=Severity.ERROR,
        file=file,
        line=document.line((EXPORTED,)),
        key=EXPORTED,
        message="it is an exported preset, which holds a preset with all that it needs",
        fix="Take it in with `sndr presets import FILE`, or with Import on the page Presets; both check it.",
    )


def lint(catalog: Catalog, text: str, path: Path, file: str, saved: str = "") -> PresetLint:
    """Check a text as if it were saved at `path`; `saved` is what is there now."""
    found = read_draft(text, path, file)
    diff = _diff(saved, text, path.name)
    if isinstance(found, tuple):
        return PresetLint(faults=found, diff=diff, data=_data(text, file))
    faults, resolved = judge(catalog, found)
    usable = all(fault.severity is not Severity.ERROR for fault in faults)
    preset = resolved.preset if resolved and usable else None
    return PresetLint(
        faults=faults,
        preset=preset,
        resolved=resolved,
        diff=diff,
        data=found.document.data,
        demands=demands(found, catalog),
    )


def edited(text: str, changes: Iterable[PresetChange]) -> str:
    """A text with values changed. Raises HostError(preset_invalid) where the text is no YAML."""
    # With it comes the library that reads YAML, for which no start of the host waits.
    from engine_host.catalog.yaml.edit import remove_value, set_value

    for change in changes:
        if change.remove:
            text = remove_value(text, change.path, tr("the text"))
        else:
            text = set_value(text, change.path, change.value, tr("the text"))
    return text


def judge(
    catalog: Catalog, found: Draft, beside: Iterable[Loaded[Any]] = ()
) -> tuple[tuple[CatalogFault, ...], ResolvedPreset | None]:
    """Check a preset with the entries that come with it; return its faults and its resolution."""
    name = found.entry.id
    known = catalog.presets.get(name) or catalog.variations.get(name)
    if known is not None and known.origin is EntryOrigin.PROGRAM:
        fix = f"Give it an id of its own; to change {name}, write `extends: {name}`."
        return (found.fault(("id",), tr("{name} comes with the program", name=name), fix),), None
    world = added(catalog, (*beside, found))
    faults = check_one(EntryKind.PRESET, found, world)
    if any(fault.severity is Severity.ERROR for fault in faults):
        return faults, None
    resolved = resolve(world, name)
    return (*faults, *conflict_faults(resolved)), resolved


def conflict_faults(resolved: ResolvedPreset) -> tuple[CatalogFault, ...]:
    """Conflicts of layers as faults of the file that is easier to change."""
    return tuple(
        CatalogFault(
            severity=Severity.ERROR,
            file=conflict.by.file,
            line=conflict.by.line,
            key=conflict.by.key,
            message=conflict.message,
            fix=conflict.because[:1].upper() + conflict.because[1:] + ".",
        )
        for conflict in resolved.conflicts
    )


def added(catalog: Catalog, entries: Iterable[Loaded[Any]]) -> Catalog:
    """The catalogue with these entries in it, in place of those of the same id."""
    models, profiles = dict(catalog.models), dict(catalog.profiles)
    presets, variations = dict(catalog.presets), dict(catalog.variations)
    for one in entries:
        name = one.entry.id
        if isinstance(one.entry, ModelEntry):
            models[name] = one
        elif isinstance(one.entry, ProfileEntry):
            profiles[name] = one
        else:
            presets.pop(name, None)
            variations.pop(name, None)
            if isinstance(one.entry, PresetVariation):
                variations[name] = one
            else:
                presets[name] = one
    return replace(catalog, models=models, profiles=profiles, presets=presets, variations=variations)


def _data(text: str, file: str) -> dict[str, Any] | None:
    """Return the parsed data of a text that is no valid preset; None where it is no YAML."""
    try:
        return parse(text, file).data
    except HostError:
        return None


def _diff(saved: str, text: str, name: str) -> str:
    lines = difflib.unified_diff(
        saved.splitlines(keepends=True), text.splitlines(keepends=True), f"saved/{name}", f"new/{name}"
    )
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
