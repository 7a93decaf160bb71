"""Replaces a function or method in memory, and takes it back."""

import contextlib
import importlib
import inspect
from dataclasses import dataclass
from typing import Any

from .signatures import of_object

MARK = "__sndr_patch__"
_ABSENT = object()


class RefusedError(Exception):
    """A rebind that does not fit; `reason` is the ledger's code."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


@dataclass(frozen=True)
class Binding:
    """One replacement that is in place: where, what was there, what is there now."""

    module: str
    target: str
    owner: Any
    name: str
    before: Any
    now: Any

    def undo(self) -> None:
        """Put back what was there."""
        setattr(self.owner, self.name, self.before)

    def wraps(self, below: "Binding") -> bool:
        """Return True if this one was put over another: that cannot be taken back below it."""
        return (self.owner, self.name) == (below.owner, below.name) and self.before is below.now

    def ours(self) -> bool:
        """Return True if the symbol in memory is still the replacement."""
        return vars(self.owner).get(self.name) is self.now


def load_function(patch: str, reference: str) -> Any:
    """A function or class of a patch's folder, from `file:name`."""
    stem, _, name = reference.partition(":")
    module = importlib.import_module(f"sndr_overlay_patches.{patch.replace('-', '_')}.{stem}")
    return getattr(module, name)


def bind(module: Any, patch: str, rebind: "dict[str, Any]") -> Binding:
    """Replace one target of a module that was executed.

    Raises RefusedError when the target is not there or has other parameters, and whatever the patch raises.
    """
    owner, name = module, str(rebind["target"])
    *path, name = name.split(".")
    for part in path:
        owner = getattr(owner, part, None)
    before = vars(owner).get(name, _ABSENT) if owner is not None else _ABSENT
    if before is _ABSENT:
        raise RefusedError("target_missing", f"{module.__name__} has no {rebind['target']}")
    function = _plain(before)
    try:
        signature = of_object(function)
    except (TypeError, ValueError) as error:
        raise RefusedError(
            "signature_changed", f"{rebind['target']} has no readable signature: {error}"
        ) from error
    if signature != rebind["signature"]:
        raise RefusedError(
            "signature_changed", f"it is {signature}, the patch was written for {rebind['signature']}"
        )
    replaced = load_function(patch, rebind["replacement"])(function)
    if not callable(replaced):
        raise RefusedError("raised", f"{rebind['replacement']} returned no function")
    # Not every callable takes attributes; the binding remembers it anyway.
    with contextlib.suppress(AttributeError, TypeError):
        setattr(replaced, MARK, patch)
    now = _like(before, replaced)
    setattr(owner, name, now)
    return Binding(module.__name__, rebind["target"], owner, name, before, now)


def _plain(found: Any) -> Any:
    if isinstance(found, classmethod | staticmethod):
        return found.__func__
    return found.fget if isinstance(found, property) else found


def _like(before: Any, replaced: Any) -> Any:
    """The replacement in the kind of descriptor that was there."""
    if isinstance(before, classmethod | staticmethod):
        return type(before)(replaced)
    if isinstance(before, property):
        return property(replaced, before.fset, before.fdel, before.__doc__)
    return replaced


def is_class(owner: Any) -> bool:
    """Return True for a class: a module's functions can be copied by name, methods cannot."""
    return inspect.isclass(owner)
