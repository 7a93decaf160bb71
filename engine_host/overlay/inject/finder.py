"""The import hook: lets everything pass but vLLM itself and the modules that patches touch."""

import _thread
import sys
import time

from .targets import TARGETS

ROOT = "vllm"


class SndrOverlayFinder:
    """Finds target modules in their shadow files; imports what it needs only when vLLM is imported."""

    def __init__(self) -> None:
        self._busy: set[int] = set()

    def find_spec(self, fullname, path=None, target=None):  # type: ignore[no-untyped-def]
        """The spec of a target module, or None for everything else; never raises."""
        me = _thread.get_ident()
        if me in self._busy or (fullname != ROOT and fullname not in TARGETS):
            return None
        # What the overlay itself imports must not come back here; other threads import meanwhile.
        self._busy.add(me)
        began = time.perf_counter()
        try:
            from .process import PROCESS

            if fullname == ROOT:
                PROCESS.begin(path, began)
                return None
            return PROCESS.spec(fullname, path)
        except Exception as error:  # noqa: BLE001 - the border to the engine: nothing of ours may stop its imports
            sys.stderr.write(f"sndr overlay: {fullname} is imported unpatched: {error!r}\n")
            return None
        finally:
            self._busy.discard(me)


Finder = SndrOverlayFinder
