"""The words for the values that a field takes, for whoever gave another one."""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

_ALTERNATIVES = re.compile(r"\^\(([\w.|-]+)\)\$")
_BOUNDS = ("ge", "gt", "le", "lt")
_LENGTHS = ("min_length", "max_length")
# Faults of a value that its type and bounds explain; of others pydantic or the field's own check tells more.
_OF_THE_TYPE = re.compile(
    r"(int|float|bool|string|tuple|list|literal|enum|decimal)_.*|.*_(type|parsing|error)|"
    r"(greater|less)_than.*|literal_error|enum|finite_number"
)


def allowed(info: FieldInfo) -> str:
    """Return what a field takes, to stand behind "it takes": `a whole number from 1 to 65535`."""
    annotation, said = _split(info.annotation, info.metadata)
    bounds = {name: getattr(one, name) for one in said for name in _BOUNDS if hasattr(one, name)}
    patterns = [one.pattern for one in said if isinstance(getattr(one, "pattern", None), str)]
    least, most = (max((getattr(one, name, None) or 0 for one in said), default=0) for name in _LENGTHS)
    what = "characters" if annotation is str else "entries"
    return _of(annotation, bounds, patterns) + _long(least, most, what)


def refusal(error: Mapping[str, Any], model: type[BaseModel]) -> str:
    """Return one error of a validation as a clause about the value, without its place."""
    message = str(error["msg"])
    if error["type"] in {"value_error", "assertion_error"}:
        return message.partition(", ")[2] or message
    if error["type"] == "extra_forbidden":
        return "there is no such key"
    if error["type"] == "missing":
        return "it is missing"
    info = field_at(model, error["loc"]) if _OF_THE_TYPE.fullmatch(error["type"]) else None
    known = None if info is None else allowed(info)
    return message[:1].lower() + message[1:] if known in {None, _OTHER} else f"it takes {known}"


def field_at(model: type[BaseModel], loc: Sequence[int | str]) -> FieldInfo | None:
    """Return the field at a location of an error; None where the location leads into what has no fields."""
    info: FieldInfo | None = None
    kind: Any = model
    for part in loc:
        kind = _plain(kind)
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            if part not in kind.model_fields:
                return None
            info = kind.model_fields[str(part)]
            kind = info.annotation
        elif get_origin(kind) in {tuple, list} and isinstance(part, int):
            kind = get_args(kind)[0]
            info = FieldInfo.from_annotation(kind)
        elif get_origin(kind) is dict:
            kind = get_args(kind)[1]
            info = FieldInfo.from_annotation(kind)
        else:
            return None
    return info


_OTHER = "another value"


def _plain(kind: Any) -> Any:
    """Return a type without what is said beside it, and without None."""
    return _split(kind)[0]


def _split(kind: Any, said: Iterable[Any] = ()) -> tuple[Any, list[Any]]:
    """Return a type without None, and everything that is said beside it."""
    found = [inner for one in said for inner in getattr(one, "metadata", (one,))]
    while True:
        if get_origin(kind) is Annotated:
            kind, *more = get_args(kind)
            found += [inner for one in more for inner in getattr(one, "metadata", (one,))]
        elif get_origin(kind) in {Union, UnionType}:
            kind = next(one for one in get_args(kind) if one is not NoneType)
        else:
            return kind, found


def _of(annotation: Any, bounds: Mapping[str, Any], patterns: Iterable[str]) -> str:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return _one_of([str(getattr(one, "value", one)) for one in inner])
    if origin in {tuple, list}:
        return 'a list, such as ["a", "b"]'
    if origin is dict or (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
        return "keys and values"
    if annotation is bool:
        return "true or false"
    if annotation in {int, float}:
        return ("a whole number" if annotation is int else "a number") + _range(bounds)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _one_of([str(one.value) for one in annotation])
    named = next(filter(None, map(_ALTERNATIVES.fullmatch, patterns)), None)
    if named is not None:
        return _one_of(named[1].split("|"))
    if annotation is not str:
        return _OTHER
    return " and ".join(["text", *(f"matches {one}" for one in patterns)]).replace(" and ", " that ", 1)


def _range(bounds: Mapping[str, Any]) -> str:
    least, above, most, below = map(bounds.get, _BOUNDS)
    if least is not None and most is not None:
        return f" from {least} to {most}"
    parts = [
        f"{word} {bound}"
        for word, bound in (("at least", least), ("above", above), ("at most", most), ("below", below))
        if bound is not None
    ]
    return f", {' and '.join(parts)}" if parts else ""


def _long(least: int, most: int, what: str) -> str:
    if most:
        return f" of {least} to {most} {what}" if least else f" of at most {most} {what}"
    return f" of at least {least} {what}" if least > 1 else " that is not empty" if least else ""


def _one_of(values: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(values[:-1]), values[-1])))
