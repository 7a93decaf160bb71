"""One row of the table of engine settings: what people are told of a setting, and how each engine is."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import UnionType
from typing import Any, get_args, get_origin

from pydantic import GetJsonSchemaHandler
from pydantic.fields import FieldInfo

LLAMA_CPP, VLLM, SGLANG = "llama.cpp", "vllm", "sglang"
_NAMES = {LLAMA_CPP: "llama.cpp", VLLM: "vLLM"}
OFF = "off"
_LARGEST = 10_000_000
# No path, no object, no flag.
_WORD = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.,-]*)?")
# The least that a form offers above a bound that is no value itself.
_ABOVE = 0.01
_KINDS: dict[object, str] = {int: "whole", float: "decimal", bool: "choice", str: "text", tuple: "words"}


@dataclass(frozen=True, slots=True)
class Argument:
    """A setting in the words of one engine: `flag` and the value, or for some values the `words` instead.

    A value in `implied` is what the engine does unasked. `aliases` are its other spellings, which no extra
    argument may use either. With neither flag nor words the engine's module writes it. `default` is for an
    engine whose default differs from the setting's.
    """

    flag: str = ""
    aliases: tuple[str, ...] = ()
    implied: tuple[object, ...] = ()
    words: Mapping[Any, tuple[str, ...]] = field(default_factory=dict)
    default: Any = None

    def written(self, value: Any) -> tuple[str, ...] | None:
        """Return the arguments that say a value; None where there are none that mean it."""
        if value is None or value in self.implied:
            return ()
        if isinstance(value, list | tuple):
            return (self.flag, *map(str, value)) if self.flag and value else ()
        if value in self.words:
            return self.words[value]
        return (self.flag, str(value)) if self.flag else None

    @property
    def flags(self) -> frozenset[str]:
        """Every spelling of it."""
        said = (word for words in self.words.values() for word in words if word.startswith("-"))
        return frozenset(filter(None, (self.flag, *self.aliases, *said)))


@dataclass(frozen=True, slots=True)
class Choice:
    """A value that forms offer, and how they call it; `build`: only for this build of vLLM."""

    value: Any
    label: str
    build: str = ""


_YES_NO = (Choice(True, "Yes"), Choice(False, "No"))


@dataclass(frozen=True, slots=True)
class EngineSetting:
    """One setting of a start.

    `default` is what a start has when no layer says more, and `why` the reason. `build` is the build of vLLM
    for which forms offer it. `kind` is whole, decimal, choice, text or words. A choice offers `choices`, or
    what server and model have. `option` is its named option on the command line, which several settings may
    share. `more` keeps it below "More settings". A `harmless` one may be set by a file from somebody else
    without asking, to a number, yes or no, or a plain word; what can name a file, a program or an address is
    not harmless. `also_off` are other spellings of `off`, which are read as that. `excludes` is a setting
    that says the same in another way. `only_with` is a setting that this one is about: while that is off,
    this means nothing. `fit` are the fields of a question to fit that set it, of which its value answers the
    last. The last four follow from the field's name and type.
    """

    caption: str
    help: str
    default: Any = None
    why: str = ""
    unit: str = ""
    llama_cpp: Argument | None = None
    vllm: Argument | None = None
    sglang: Argument | None = None
    build: str = ""
    choices: tuple[Choice, ...] = ()
    option: str = ""
    more: bool = False
    needs_restart: bool = True
    since: str = "0.1.0"
    harmless: bool = False
    also_off: tuple[str, ...] = ()
    excludes: str = ""
    only_with: str = ""
    fit: tuple[str, ...] = ()
    name: str = ""
    kind: str = ""
    low: float = 0
    high: float = _LARGEST

    @property
    def arguments(self) -> dict[str, Argument]:
        """Its arguments, by engine."""
        said = {LLAMA_CPP: self.llama_cpp, VLLM: self.vllm, SGLANG: self.sglang}
        return {engine: argument for engine, argument in said.items() if argument is not None}

    @property
    def engines(self) -> tuple[str, ...]:
        """The engines of this program that it means something to."""
        return tuple(engine for engine in self.arguments if engine in _NAMES)

    @property
    def description(self) -> str:
        """Its help, after the engine's name where it is one engine's alone."""
        return ": ".join((*(_NAMES[one] for one in self.engines if len(self.engines) == 1), self.help))

    @property
    def spoken(self) -> str:
        """Its name for screen readers."""
        return f"{self.caption}: {self.help}"

    def spelled(self, value: Any) -> Any:
        """Return a value in the one spelling that it has inside."""
        return OFF if isinstance(value, str) and value in self.also_off else value

    def is_harmless(self, value: Any) -> bool:
        """Return True for a value that a file from somebody else may set unasked."""
        plain = value is None or isinstance(value, int | float)
        return self.harmless and (plain or (isinstance(value, str) and _WORD.fullmatch(value) is not None))

    def same(self, engine: str, one: Any, other: Any) -> bool:
        """Return True where two values are the same start of an engine."""
        if one == other:
            return True
        argument = self.arguments.get(engine)
        if argument is None or not argument.flags:
            return False
        words = argument.written(one)
        return words is not None and words == argument.written(other)

    def default_of(self, engine: str) -> Any:
        """Return what a start on an engine has when no layer says more."""
        own = self.arguments[engine].default
        return self.default if own is None else own

    def __get_pydantic_json_schema__(self, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Say the row in the JSON Schema, which clients of the control API read."""
        return handler(schema) | {
            "title": self.caption,
            "description": self.description,
            "engines": list(self.engines),
            "unit": self.unit,
            "advanced": self.more,
            "needs_restart": self.needs_restart,
            "since": self.since,
        }


def row_of(name: str, info: FieldInfo) -> EngineSetting:
    """Return a field's row with what follows from its name, type and bounds."""
    (row,) = (one for one in info.metadata if isinstance(one, EngineSetting))
    (kind,) = (one for one in _types(info.annotation) if one is not type(None))
    choices = _YES_NO if kind is bool else row.choices
    found = "choice" if choices else row.kind or _KINDS[get_origin(kind) or kind]
    row = replace(row, name=name, kind=found, choices=choices)
    for bound in info.metadata:
        row = replace(row, low=getattr(bound, "ge", row.low), high=getattr(bound, "le", row.high))
        if (above := getattr(bound, "gt", None)) is not None:
            row = replace(row, low=above + _ABOVE)
    if row.kind == "decimal":
        row = replace(row, low=float(row.low), high=float(row.high))
    return row


def _types(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
