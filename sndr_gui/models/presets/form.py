"""The form of a preset, made from the schema of its file: fields with their ranges, choices and helps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from engine_host.protocol.language import tr
from engine_host.protocol.presets import CatalogPage, PresetForm, PresetItem
from sndr_gui.kit.numbers import decimal, whole
from sndr_gui.kit.setting_words import word_of

Path = tuple[str, ...]
_ALTERNATIVES = re.compile(r"\^\(([\w.|-]+)\)\$")
_NONNEGATIVE = 1e-6
_LARGEST = 10_000_000
# Not edited by hand: the format never changes, and the id only while the preset is new.
_LEFT_OUT = {("format",)}
_GROUPS = {
    "notes": tr("Notes"),
    "settings": tr("Settings"),
    "patches": tr("Patches"),
    "needs": tr("What it needs"),
    "card": tr("Card"),
}
_CAPTIONS = {
    ("id",): tr("Id"),
    ("extends",): tr("Extends"),
    ("variant",): tr("Weights"),
    ("patches", "on"): tr("Switched on"),
    ("patches", "off"): tr("Left out"),
    ("patches", "only"): tr("Only these"),
    ("needs", "gpus"): "GPUs",
    ("needs", "vram_gib"): tr("VRAM of each, GiB"),
    ("needs", "ram_gib"): tr("Main memory, GiB"),
    ("needs", "sm"): tr("Compute capability"),
    ("needs", "nvlink"): "NVLink",
}
_HELPS = {
    ("id",): tr("small letters, digits, dots and hyphens; also the name of its file"),
    ("title",): tr("how lists call it"),
    ("extends",): tr("everything that is not set here is as there"),
    ("variant",): tr("which set of the model's weights"),
    ("profile",): tr("a way of running whichever model"),
    ("notes",): tr("for yourself"),
}


@dataclass(frozen=True)
class FormField:
    """One value of a preset.

    `kind` is whole, decimal, choice, flag, words (a list on one line), lines (a list of sentences) or text.
    `choices` are offered, and nothing else is possible where `closed`. `engines` are those that a setting
    means something to; other values have none. `tokens`: it counts tokens.
    """

    path: Path
    group: str
    caption: str
    help: str
    kind: str
    choices: tuple[str, ...] = ()
    closed: bool = False
    low: float = 0
    high: float = _LARGEST
    required: bool = False
    engines: tuple[str, ...] = ()
    tokens: bool = False

    @property
    def key(self) -> str:
        """The place in the file, as people write it."""
        return ".".join(self.path)

    @property
    def spoken(self) -> str:
        """Its name for screen readers."""
        return f"{self.caption}: {self.help}" if self.help else self.caption


def is_variation(data: Mapping[str, Any] | None) -> bool:
    """Return True for a preset's text that says only what is different from another one."""
    return data is None or "extends" in data or "model" not in data


def fields_of(form: PresetForm, data: Mapping[str, Any] | None) -> tuple[FormField, ...]:
    """The fields of the kind of preset that a text is."""
    schema = form.variation if is_variation(data) else form.preset
    definitions = schema.get("$defs", {})
    return tuple(_walk(schema, definitions, ()))


def text_only(form: PresetForm, data: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The keys that only the text can change: lists of tables."""
    schema = form.variation if is_variation(data) else form.preset
    return tuple(_tables(schema, schema.get("$defs", {}), ()))


def fits_engine(field: FormField, engine: str | None) -> bool:
    """Return True when a value means something to an engine; every one does while the engine is not known."""
    if field.path[0] == "patches":
        # They are patches of vLLM.
        return engine in (None, "vllm")
    if field.path[0] != "settings" or engine is None:
        return True
    # SGLang is told vLLM's settings, as far as it has words for them.
    return not field.engines or ("vllm" if engine == "sglang" else engine) in field.engines


def with_choices(
    fields: Iterable[FormField], catalog: CatalogPage, presets: Iterable[PresetItem], model: str, engine: str
) -> tuple[FormField, ...]:
    """The fields with the ids that the catalogue offers for them."""
    items = tuple(presets)
    found = next((one for one in catalog.models if one.id == model), None)
    offered: dict[Path, tuple[str, ...]] = {
        ("extends",): tuple(item.preset.id for item in items if item.extends is None),
        ("model",): tuple(one.id for one in catalog.models),
        ("profile",): tuple(one.id for one in catalog.profiles),
        ("variant",): tuple(one.id for one in found.variants) if found else (),
        ("drafter",): tuple(one.id for one in found.drafters) if found else (),
        ("card", "fallback"): tuple(item.preset.id for item in items),
        ("needs", "known_good"): tuple(one.id for one in catalog.hardware),
    }
    entry = next((one for one in catalog.engines if one.id == engine), None)
    for limit in entry.limits if entry else ():
        if limit.one_of:
            offered[("settings", limit.setting)] = limit.one_of
    return tuple(_offering(field, offered.get(field.path, ())) for field in fields)


def value_at(data: Mapping[str, Any] | None, path: Path) -> Any:
    """Return the value at a place of a text; None where it says nothing."""
    inner: Any = data
    for key in path:
        if not isinstance(inner, Mapping):
            return None
        inner = inner.get(key)
    return inner


def shown(value: Any) -> str:
    """A value as a field shows it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(shown, value))
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def typed(field: FormField, content: str) -> Any:
    """Return the text of a field as a value of the file; None for an empty field."""
    content = content.strip()
    if not content:
        return None
    if field.kind == "words":
        return [part.strip() for part in content.split(",") if part.strip()]
    if field.kind == "lines":
        return [line.strip() for line in content.splitlines() if line.strip()]
    if field.kind == "whole":
        return whole(content, field.tokens)
    if field.kind == "decimal":
        number = decimal(content)
        if number is None:
            raise ValueError(content)
        return int(number) if number.is_integer() else number
    if field.kind == "flag":
        return content == "yes"
    return content


def _offering(field: FormField, choices: tuple[str, ...]) -> FormField:
    if not choices or field.kind == "words":
        return field
    return replace(field, kind="choice", choices=choices, closed=True)


def _walk(schema: Mapping[str, Any], definitions: Mapping[str, Any], path: Path) -> Iterator[FormField]:
    required = set(schema.get("required", ()))
    for name, described in schema.get("properties", {}).items():
        place = (*path, name)
        if place in _LEFT_OUT:
            continue
        inner, optional = _unwrapped(described, definitions)
        if inner.get("type") == "object" and "properties" in inner:
            yield from _walk(inner, definitions, place)
            continue
        made = _field(place, inner, definitions)
        if made is not None:
            help_text = str(described.get("description") or inner.get("description") or "")
            # A setting brings its caption and its engines from the table of settings.
            engines = tuple(map(str, described.get("engines", ())))
            yield replace(
                made,
                caption=word_of(str(described["title"])) if engines else made.caption,
                engines=engines,
                tokens=described.get("unit") == "tokens",
                help=_HELPS.get(place, word_of(help_text)),
                required=name in required and not optional and not path,
            )


def _tables(schema: Mapping[str, Any], definitions: Mapping[str, Any], path: Path) -> Iterator[str]:
    for name, described in schema.get("properties", {}).items():
        inner, _ = _unwrapped(described, definitions)
        if inner.get("type") == "object" and "properties" in inner:
            yield from _tables(inner, definitions, (*path, name))
        elif _field((*path, name), inner, definitions) is None and (*path, name) not in _LEFT_OUT:
            yield ".".join((*path, name))


def _unwrapped(
    described: Mapping[str, Any], definitions: Mapping[str, Any]
) -> tuple[Mapping[str, Any], bool]:
    """A schema without its reference, and whether null is allowed."""
    optional = False
    if "anyOf" in described:
        kinds = [one for one in described["anyOf"] if one.get("type") != "null"]
        optional = len(kinds) < len(described["anyOf"])
        if len(kinds) != 1:
            return {}, optional
        described = kinds[0]
    if "$ref" in described:
        described = definitions[str(described["$ref"]).rpartition("/")[2]]
    return described, optional


def _field(path: Path, schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> FormField | None:
    """A field without its help; None for what only a text can say."""
    name = path[-1]
    caption = _CAPTIONS.get(path, name.replace("_", " ").capitalize())
    made = FormField(path, _GROUPS.get(path[0], tr("Preset")), caption, "", "text")
    kind = schema.get("type")
    if "enum" in schema:
        return replace(made, kind="choice", choices=tuple(map(str, schema["enum"])), closed=True)
    if kind == "boolean":
        return replace(made, kind="flag", choices=("yes", "no"), closed=True)
    if kind in ("integer", "number"):
        low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
        high = schema.get("maximum", _LARGEST)
        if kind == "integer":
            return replace(made, kind="whole", low=int(low), high=int(high))
        low = float(low) + (_NONNEGATIVE if "exclusiveMinimum" in schema else 0.0)
        return replace(made, kind="decimal", low=low, high=float(high))
    if kind == "array":
        inner, _ = _unwrapped(schema.get("items", {}), definitions)
        if inner.get("type") != "string":
            return None
        choices = tuple(map(str, inner.get("enum", ())))
        sentences = not choices and "pattern" not in inner and "minLength" in inner
        return replace(made, kind="lines" if sentences else "words", choices=choices)
    if kind == "string":
        alternatives = _ALTERNATIVES.fullmatch(str(schema.get("pattern", "")))
        if alternatives:
            return replace(made, kind="choice", choices=tuple(alternatives[1].split("|")), closed=True)
        return made
    return None
