"""Names and patterns of modules as a config lists them, matched in a time that grows with their length alone.

A config is anybody's: Python's own patterns can be written so that one name takes hours. These are matched by
the engine of pydantic, which knows no look-around and takes one step a letter.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cached_property

from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

# Where a checkpoint may keep its decoder; patterns are written against any of these.
_PREFIXES = ("model.", "model.language_model.", "language_model.model.", "language_model.", "")
# Letters of all patterns of one list: to compile them may take a tenth of a millisecond each.
_MOST = 1_500
_GLOB = re.compile(r"[\w.*-]+")


class ModuleNames:
    """A list of modules: by name, or by a pattern (`re:…`, or with `*`)."""

    def __init__(self, names: Iterable[str]) -> None:
        """Raises ValueError for a pattern that cannot be matched here."""
        listed = list(names)
        self._plain = frozenset(normal(name) for name in listed if not _is_pattern(name))
        self._patterns = tuple(dict.fromkeys(name for name in listed if _is_pattern(name)))
        if sum(map(len, self._patterns)) > _MOST:
            raise ValueError("its patterns of modules are longer than any such list")
        # Compiled now, so that what cannot be is refused here.
        _ = self._compiled

    def __bool__(self) -> bool:
        return bool(self._plain or self._patterns)

    def __contains__(self, module: str) -> bool:
        return not self._plain.isdisjoint(_runs(module)) or self._matches(module)

    def names(self, module: str) -> bool:
        """Return True if the list has this very name."""
        return module in self._plain

    @cached_property
    def _compiled(self) -> SchemaValidator | None:
        if not self._patterns:
            return None
        parts = "|".join(f"(?:{_expression(pattern)})" for pattern in self._patterns)
        try:
            return SchemaValidator(
                core_schema.str_schema(pattern=f"(?m)^(?:{parts})", regex_engine="rust-regex")
            )
        except SchemaError as error:
            raise ValueError("a pattern of its modules cannot be read") from error

    def _matches(self, module: str) -> bool:
        if self._compiled is None:
            return False
        try:
            # Each place in a line of its own, at whose start a pattern begins.
            self._compiled.validate_python("\n".join(prefix + module for prefix in _PREFIXES))
        except ValidationError:
            return False
        return True


def normal(name: str) -> str:
    """Return a module's name without the place of its decoder, which is not the same everywhere."""
    place = name.find("layers.")
    return name[place:] if place > 0 and name[place - 1] == "." and not name.startswith("mtp") else name


def _is_pattern(name: str) -> bool:
    return name.startswith("re:") or "*" in name


def _expression(pattern: str) -> str:
    """A pattern as an expression that begins at the start of a name."""
    if not pattern.startswith("re:"):
        if not _GLOB.fullmatch(pattern):
            raise ValueError("a pattern of its modules cannot be read")
        inside = ".*".join(re.escape(part) for part in pattern.split("*"))
        return rf"{inside}(?:\..*)?$"
    written = pattern[3:]
    if "{" in written:
        # A counted repetition may stand for any number of copies.
        raise ValueError("a pattern of its modules cannot be read")
    return written


def _runs(module: str) -> Iterator[str]:
    """Every run of a name's components: a list may name a layer, a block of it, or the word alone."""
    parts = module.split(".")
    for first in range(len(parts)):
        for last in range(first + 1, len(parts) + 1):
            yield ".".join(parts[first:last])
