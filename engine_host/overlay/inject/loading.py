"""Loads a target module from its shadow file or its own, and does its rebinds once it was executed."""

import importlib.machinery
from collections.abc import Callable
from typing import Any

_KEPT = frozenset({"__name__", "__loader__", "__package__", "__spec__", "__path__", "__builtins__"})


class OverlayLoader(importlib.machinery.SourceFileLoader):
    """As Python's own loader; `origin` is the module's own file, `executed` is called after its code ran."""

    def __init__(
        self, fullname: str, path: str, origin: str, executed: "Callable[[Any, str], None]",
        broken: "Callable[[str, BaseException], None]",
    ) -> None:  # fmt: skip
        super().__init__(fullname, path)
        self._origin = origin
        self._executed = executed
        self._broken = broken

    def exec_module(self, module: Any) -> None:
        """Run the module; if an edited source fails, the engine gets the module as it was."""
        if self.path == self._origin:
            super().exec_module(module)
        else:
            # Before its code runs: what that makes of `__file__` is made of this.
            module.__sndr_origin__ = self._origin
            try:
                super().exec_module(module)
            except Exception as error:  # noqa: BLE001 - whatever the edit broke, the engine must go on
                self._broken(module.__name__, error)
                self._unpatched(module)
        self._executed(module, self._origin)

    def _unpatched(self, module: Any) -> None:
        for name in [name for name in vars(module) if name not in _KEPT]:
            del vars(module)[name]
        module.__file__ = self.path = module.__spec__.origin = self._origin
        super().exec_module(module)
