"""Values with sentences: they travel in English, and as messages with values for other languages."""

import math
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any

from pydantic import SerializerFunctionWrapHandler, WrapValidator, model_serializer, model_validator

from engine_host.protocol.base import Wire
from engine_host.protocol.language.catalogue import Said

_KEPT = WrapValidator(lambda text, check: text if isinstance(text, Said) else check(text))
Sentence = Annotated[str, _KEPT]
"""A text of ours for people: the name of its message, or a text of another program."""
_DEEPEST = 4


class Spoken(Wire):
    """A value with sentences; `said` has for each the message in the catalogue, and what stands in it."""

    @model_validator(mode="before")
    @classmethod
    def _heard(cls, data: Any) -> Any:
        """Say each sentence in the language of this program."""
        if not isinstance(data, dict):
            return data
        said = data.get("said")
        heard = {
            name: _heard(said.get(name) if isinstance(said, dict) else None, text)
            for name in _sentences(cls)
            if isinstance(text := data.get(name), str) and not isinstance(text, Said)
        }
        return {**data, **heard}

    @model_serializer(mode="wrap")
    def _sent(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Return the value as others get it, in English."""
        data: dict[str, Any] = written(self)
        texts = {name: getattr(self, name) for name in _sentences(type(self)) if name in data}
        spoken = {name: text for name, text in texts.items() if isinstance(text, Said)}
        data |= {name: text.english for name, text in spoken.items()}
        # A message without values is its own name.
        if said := {name: _sent(text) for name, text in spoken.items() if text.values}:
            data["said"] = said
        return data


@cache
def _sentences(cls: type[Spoken]) -> tuple[str, ...]:
    return tuple(name for name, field in cls.model_fields.items() if _KEPT in field.metadata)


def _sent(value: Any) -> Any:
    if isinstance(value, Said):
        plural = {"many": value.many, "number": value.number} if value.many else {}
        return {"id": value.one, **plural, "values": {name: _sent(one) for name, one in value.values.items()}}
    return [_sent(one) for one in value] if isinstance(value, list) else value


def _heard(saying: Any, text: str) -> str:
    """Return a sentence that came with its message; one that makes no sense stays as it came."""
    try:
        return Said.of(text, {}) if saying is None else _said(saying)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return text


def _said(saying: Mapping[str, Any], depth: int = 0) -> Said:
    def value_of(value: Any) -> Any:
        if isinstance(value, list):
            return [value_of(one) for one in value]
        return _said(value, depth + 1) if isinstance(value, dict) else value

    if depth > _DEEPEST or not isinstance(saying["id"], str) or not math.isfinite(saying.get("number", 1)):
        raise ValueError("no message")
    values = {str(name): value_of(value) for name, value in saying["values"].items()}
    return Said.of(saying["id"], values, str(saying.get("many", "")), saying.get("number", 1))
