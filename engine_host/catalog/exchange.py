"""A preset as one file for somebody else: itself and everything that it needs, checked when it comes in."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine_host.catalog.demands import demands
from engine_host.catalog.document import Document, KeyPath, invalid
from engine_host.catalog.drafts import EXPORTED, added, judge
from engine_host.catalog.entries import Loaded, check
from engine_host.catalog.index import Catalog
from engine_host.catalog.reader import Place
from engine_host.catalog.yaml.file import dump, parse
from engine_host.core.errors import HostError
from engine_host.protocol.base import Severity
from engine_host.protocol.catalog import EntryKind, PresetVariation
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.consents import Demand
from engine_host.protocol.presets import CatalogFault, EntryOrigin

_PARTS = {
    "preset": EntryKind.PRESET,
    "extends": EntryKind.PRESET,
    "model": EntryKind.MODEL,
    "profile": EntryKind.PROFILE,
}


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The result of checking an exported file: texts to write by path; `unchanged` are there already.

    `demands` are what the entries that would be written ask for beyond harmless settings.
    """

    id: str
    writes: tuple[tuple[Path, str], ...]
    unchanged: tuple[str, ...]
    faults: tuple[CatalogFault, ...]
    demands: tuple[Demand, ...] = ()


def export(catalog: Catalog, preset_id: str) -> str:
    """A preset with its model and profile, and with what it extends. Raises HostError(not_found)."""
    preset = catalog.preset(preset_id)
    file = catalog.file(preset_id)
    parts: dict[str, Any] = {EXPORTED: 1, "preset": file.document.data}
    if isinstance(file.entry, PresetVariation):
        parts["extends"] = catalog.presets[file.entry.extends].document.data
    parts["model"] = catalog.models[preset.model].document.data
    parts["profile"] = catalog.profiles[preset.profile].document.data
    return dump(parts)


def check_import(
    catalog: Catalog, text: str, place: Place, new_id: str | None = None, *, replacing: bool = False
) -> ImportResult:
    """Check an exported file and return the entries that importing it would write.

    Raises HostError(preset_invalid) for a file that cannot be used, HostError(conflict) when something else
    is there under the same id and `replacing` is off.
    """
    entries = _read(text, place, new_id)
    preset = entries.pop("preset")
    writes: list[tuple[Path, str]] = []
    unchanged: list[str] = []
    faults: list[CatalogFault] = []
    beside: list[Loaded[Any]] = []
    asked: list[Demand] = []
    for part, one in entries.items():
        known = _known(catalog, _PARTS[part], one.entry.id)
        if known is None:
            beside.append(one)
            asked += _demands(one, part, catalog)
            writes.append((one.path, dump(one.document.data)))
        elif known.document.data == one.document.data:
            unchanged.append(known.file)
        elif known.origin is EntryOrigin.PROGRAM:
            faults.append(_differs(one, known, part))
        else:
            _may_replace(one, known, replacing)
            beside.append(one)
            asked += _demands(one, part, catalog)
            writes.append((known.path, dump(one.document.data)))
    known = _known(catalog, EntryKind.PRESET, preset.entry.id)
    if known is not None and known.document.data == preset.document.data:
        unchanged.append(known.file)
    else:
        if known is not None:
            _may_replace(preset, known, replacing)
        path = preset.path if known is None else known.path
        writes.append((path, dump(preset.document.data)))
        asked += _demands(preset, "preset", added(catalog, beside))
    if writes:
        preset_faults, _resolved = judge(catalog, preset, beside)
        refuse(preset_faults)
        faults += preset_faults
    return ImportResult(preset.entry.id, tuple(writes), tuple(unchanged), tuple(faults), tuple(asked))


def _demands(one: Loaded[Any], part: str, catalog: Catalog) -> list[Demand]:
    """Return what an entry asks for, by its place in the whole file."""
    return [demand.model_copy(update={"key": f"{part}.{demand.key}"}) for demand in demands(one, catalog)]


def refuse(faults: tuple[CatalogFault, ...]) -> None:
    """Raises HostError(preset_invalid) that names the first error among them."""
    errors = [fault for fault in faults if fault.severity is Severity.ERROR]
    if not errors:
        return
    first = errors[0]
    error = invalid(first.file, first.line, first.key, first.message, first.fix)
    error.problem.evidence["faults"] = [fault.model_dump(mode="json") for fault in faults]
    raise error


def _read(text: str, place: Place, new_id: str | None) -> dict[str, Loaded[Any]]:
    where = tr("the imported file")
    document = parse(text, where)
    if document.data.get(EXPORTED) != 1:
        plain = EXPORTED not in document.data and "id" in document.data
        raise invalid(
            where, document.line((EXPORTED,)), EXPORTED, tr("it is no exported preset of this format"),
            tr("A preset by itself is taken in with `sndr presets save FILE`.") if plain
            else tr("Export it with `sndr presets export`."),
        )  # fmt: skip
    for key in document.data:
        if key != EXPORTED and key not in _PARTS:
            raise invalid(where, document.line((key,)), key, tr("there is no such key"), tr("Remove it."))
    entries: dict[str, Loaded[Any]] = {}
    for part, kind in _PARTS.items():
        if part not in document.data:
            if part in {"preset", "model", "profile"}:
                raise invalid(where, 1, part, tr("this key is missing"), tr("Export the preset again."))
            continue
        inner = _part(document, part, new_id if part == "preset" else None, where)
        folder = place.folder(kind)
        name = str(inner.data.get("id", ""))
        found = check(kind, inner, folder / f"{name}.yaml", where, EntryOrigin.USER)
        if isinstance(found, tuple):
            refuse(tuple(fault.model_copy(update={"key": f"{part}.{fault.key}"}) for fault in found))
        else:
            entries[part] = found
    return entries


def _part(document: Document, part: str, new_id: str | None, where: str) -> Document:
    data = document.data[part]
    if not isinstance(data, dict):
        raise invalid(where, document.line((part,)), part, tr("it must be keys and values"))
    if new_id is not None:
        data = {**data, "id": new_id}
    lines: dict[KeyPath, int] = {
        path[1:]: line for path, line in document.lines.items() if path[0] == part and len(path) > 1
    }
    return Document(dump(data), data, lines)


def _known(catalog: Catalog, kind: EntryKind, name: str) -> Loaded[Any] | None:
    if kind is EntryKind.MODEL:
        return catalog.models.get(name)
    if kind is EntryKind.PROFILE:
        return catalog.profiles.get(name)
    return catalog.presets.get(name) or catalog.variations.get(name)


def _may_replace(one: Loaded[Any], known: Loaded[Any], replacing: bool) -> None:
    """Raise HostError(conflict) unless a person's own file may be replaced."""
    if replacing and known.origin is EntryOrigin.USER:
        return
    shipped = known.origin is EntryOrigin.PROGRAM
    raise HostError(
        Reason.CONFLICT,
        tr(
            "{entry} is there already and differs in {keys} ({file}).",
            entry=one.entry.id,
            keys=", ".join(_keys(one, known)),
            file=known.file,
        ),
        cause="It comes with the program." if shipped else "Nothing is overwritten unasked.",
        fix=Fix(
            text="Import it under another id."
            if shipped
            else "Import it under another id, or replace what is there.",
            command="sndr presets import FILE --as ID" + ("" if shipped else "  (or --replace)"),
        ),
        evidence={"id": one.entry.id, "file": known.file, "keys": list(_keys(one, known))},
    )


def _differs(one: Loaded[Any], known: Loaded[Any], part: str) -> CatalogFault:
    keys = ", ".join(_keys(one, known))
    return CatalogFault(
        severity=Severity.WARNING,
        file=known.file,
        key=part,
        message=tr(
            "{entry} in the imported file differs in {keys}; the program's own is used",
            entry=one.entry.id,
            keys=keys,
        ),
        fix="Check that the preset still means the same.",
    )


def _keys(one: Loaded[Any], known: Loaded[Any]) -> Iterator[str]:
    for key in (*known.document.data, *(key for key in one.document.data if key not in known.document.data)):
        if one.document.data.get(key) != known.document.data.get(key):
            yield key
