"""The demands of a file of the catalogue beyond harmless settings, place by place, with what each can do."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from engine_host.catalog.document import KeyPath, dotted
from engine_host.catalog.entries import Loaded
from engine_host.catalog.index import Catalog
from engine_host.engines.flag_risks import risk
from engine_host.engines.flag_spelling import ARGPARSE
from engine_host.protocol.catalog import (
    Drafter,
    EngineEntry,
    HardwareEntry,
    ModelEntry,
    PresetEntry,
    PresetVariation,
    ProfileEntry,
    Variant,
)
from engine_host.protocol.engine_settings.table import SETTINGS, Overrides
from engine_host.protocol.launch.consents import Demand
from engine_host.protocol.presets import EntryOrigin

_UNKNOWN_FLAG = "This program does not know this flag: read the engine's documentation before you allow it."
_UNKNOWN_FIELD = "This program does not know what this can do."
_LOOSE_WORD = "It is handed to the engine as it is."
_PATCHES = "Chooses which patches of this machine change vLLM's code in memory."
_REPOSITORY = "Weights are fetched from there; whoever owns it decides what the engine loads."
_BUNDLED = "Takes a file that came with the program for these weights."
_SPECULATION = (
    "Tells vLLM how to draft: it can load a second model from a path or a repository, or Python code."
)
_WRONG = "Starts the engine also where its answers are known to be wrong."
# Beginnings of variables.
_LOADS = ("LD_", "DYLD_", "PYTHON", "PATH", "CUDA_HOME", "VLLM_PLUGINS", "TRITON_", "TORCHINDUCTOR_")
_SWITCHES = ("VLLM_", "GGML_", "CUDA_", "NCCL_", "TORCH_", "PYTORCH_", "OMP_", "MKL_", "KMP_", "HF_")
_LOADING = "Says where the engine finds libraries or programs: it can run somebody's code."
_SWITCH = "A switch of the engine or of a library in it: it may change what it answers, or how fast."
_UNKNOWN_VARIABLE = "This program does not know this variable: find out who reads it before you allow it."
_NO_WORD = "It is no plain word: the engine may read it as a path, or as a program."

# Fields that can do no harm. What is neither here nor below is shown: a new field is not harmless by itself.
_HEAD = frozenset({"format", "id", "title"})
HARMLESS: Mapping[type[BaseModel], frozenset[str]] = {
    EngineEntry: _HEAD | {"pin", "limits", "sources"},
    HardwareEntry: _HEAD
    | {
        *("vendor", "architecture", "sm", "names", "vram_mib", "bandwidth_gb_s", "bandwidth_measured_gb_s"),
        *("tflops", "pcie", "nvlink", "power_w", "formats", "limits", "sources", "notes"),
    },
    ModelEntry: _HEAD
    | {
        *("family", "publisher", "licence", "tasks", "modalities", "context", "parameters"),
        *("active_parameters", "mtp_layers", "shape", "sampling", "limits", "sources", "notes"),
    },
    # Its revision is said with its repository.
    Variant: frozenset(
        {
            *("id", "format", "quantization", "bits", "revision", "files", "size_gb", "sm", "mtp"),
            *("limits", "notes"),
        }
    ),
    Drafter: frozenset({"id", "method", "size_gb", "tokens", "notes"}),
    ProfileEntry: _HEAD | {"summary", "good_for", "limits", "notes"},
    PresetEntry: _HEAD
    | {*("summary", "model", "variant", "engine", "profile", "drafter", "needs", "limits", "card")},
    PresetVariation: _HEAD | {"summary", "extends", "variant", "profile", "notes"},
}
LOOKED_AT = frozenset({"settings", "patches", "repository", "bundled", "variants", "drafters"})


def demands(one: Loaded[Any], catalog: Catalog) -> tuple[Demand, ...]:
    """Return what a file asks for; what the program's own catalogue says too is not asked for by the file."""
    return tuple(_Asked(one, _engine(one.entry, catalog), _known_places(catalog)).of(one.entry, ()))


def _engine(entry: Any, catalog: Catalog) -> str | None:
    """Return the engine that a file's own settings are for; None where it is for whichever."""
    if isinstance(entry, PresetVariation):
        base = catalog.presets.get(entry.extends)
        return None if base is None else base.entry.engine.value
    return entry.engine.value if isinstance(entry, PresetEntry) else None


def _known_places(catalog: Catalog) -> frozenset[str]:
    """Return the repositories, their versions and the bundled files that the program names itself."""
    found: set[str] = set()
    for one in catalog.models.values():
        if one.origin is EntryOrigin.PROGRAM:
            model = one.entry
            found |= {variant.bundled or "" for variant in model.variants}
            for each in (model, *model.variants, *model.drafters):
                found |= {_place(each), _place(each).partition("@")[0]}
    return frozenset(found - {""})


def _place(entry: Any) -> str:
    """Return a repository with its version; a version can also be somebody's proposal of a change."""
    revision = getattr(entry, "revision", None)
    return f"{entry.repository}@{revision}" if entry.repository and revision else entry.repository or ""


class _Asked:
    """The demands of one file."""

    def __init__(self, one: Loaded[Any], engine: str | None, known: frozenset[str]) -> None:
        self._one = one
        self._engine = engine
        self._known = known

    def of(self, entry: BaseModel, path: KeyPath) -> Iterator[Demand]:
        """Yield what an entry, or a part of it, asks for."""
        for name in type(entry).model_fields:
            value, at = getattr(entry, name), (*path, name)
            if name not in entry.model_fields_set or value is None or name in HARMLESS[type(entry)]:
                continue
            match name:
                case "settings":
                    yield from self._settings(value, at)
                case "patches":
                    said = value.model_dump(mode="json", exclude_defaults=True)
                    if said:
                        text = "; ".join(
                            f"{key}: {', '.join(names) or 'none'}" for key, names in said.items()
                        )
                        yield self._demand(at, text, _PATCHES)
                case "repository" if _place(entry) not in self._known:
                    yield self._demand(at, _place(entry), _REPOSITORY)
                case "bundled" if value not in self._known:
                    yield self._demand(at, value, _BUNDLED)
                case "repository" | "bundled":
                    pass
                case "variants" | "drafters":
                    for number, inner in enumerate(value):
                        yield from self.of(inner, (*at, number))
                case _:
                    yield self._demand(at, str(value), _UNKNOWN_FIELD, known=False)

    def _settings(self, settings: Any, path: KeyPath) -> Iterator[Demand]:
        if isinstance(settings, Overrides):
            yield from self._overrides(settings, path, self._engine)
            return
        for engine, group in settings.items():
            yield from self._overrides(group, (*path, engine), None if engine == "any" else engine)

    def _overrides(self, settings: Overrides, path: KeyPath, engine: str | None) -> Iterator[Demand]:
        for name in Overrides.model_fields:
            value = getattr(settings, name)
            row = SETTINGS[name]
            if name not in settings.model_fields_set or value is None or row.is_harmless(value):
                continue
            if name == "variables":
                yield from self._variables(value, (*path, name))
            elif row.kind == "words":
                yield from self._words(value, (*path, name), engine)
            elif name == "speculation":
                yield self._demand((*path, name), str(value), _SPECULATION)
            elif name == "allow_wrong_answers":
                yield self._demand((*path, name), str(value), _WRONG)
            else:
                yield self._demand((*path, name), str(value), _NO_WORD)

    def _variables(self, words: tuple[str, ...], path: KeyPath) -> Iterator[Demand]:
        """Yield each variable; a table has them by name, a list by number."""
        for number, word in enumerate(words):
            name = word.partition("=")[0]
            table = (*path, name) in self._one.document.lines
            known = name.startswith((*_LOADS, *_SWITCHES))
            does = _LOADING if name.startswith(_LOADS) else _SWITCH if known else _UNKNOWN_VARIABLE
            yield self._demand((*path, name if table else number), word, does, known=known)

    def _words(self, words: tuple[str, ...], path: KeyPath, engine: str | None) -> Iterator[Demand]:
        """Yield each flag with the values behind it."""
        starts = [number for number, word in enumerate(words) if ARGPARSE.name(word) is not None]
        if words and 0 not in starts:
            starts.insert(0, 0)
        for start, end in zip(starts, [*starts[1:], len(words)], strict=True):
            text, place = shlex.join(words[start:end]), (*path, start)
            if ARGPARSE.name(words[start]) is None:
                yield self._demand(place, text, _LOOSE_WORD, known=False)
            else:
                does = risk(engine, words[start])
                yield self._demand(place, text, does or _UNKNOWN_FLAG, known=does is not None)

    def _demand(self, path: KeyPath, what: str, does: str, *, known: bool = True) -> Demand:
        line = self._one.line(*path)
        return Demand(file=self._one.file, line=line, key=dotted(path), what=what, does=does, known=known)
