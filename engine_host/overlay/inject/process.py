"""The overlay in one process of vLLM; everything is decided once, when vLLM is first imported."""

import importlib.machinery
import importlib.util
import json
import os
import sys
import threading
import time
import traceback
from multiprocessing.util import register_after_fork
from typing import Any

from . import probe
from .hits import COUNTS
from .ledger import LEDGER
from .loading import OverlayLoader
from .rebinding import RefusedError, bind
from .role import HELPER, role
from .settle import APPLIED, FAILED, REVERTED, SKIPPED, Settled, State, settle, without_edits
from .shadow import digest, for_shadow, shadow_file

_TRACEBACK = 3_000


class Process:
    """The patches of this process, and what became of each."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._begun = False
        self._said: list[tuple[str, dict[str, Any]]] = []
        self.settled = Settled({}, {}, {})
        self._shadows = os.environ.get("SNDR_OVERLAY_SHADOW", "")

    def begin(self, path: Any = None, began: "float | None" = None) -> None:
        """vLLM is about to be imported: read the manifest and settle.

        `began` is when the overlay's own modules began to be imported: they count as its cost.
        """
        with self._lock:
            if self._begun:
                return
            self._begun = True
            began = began or time.perf_counter()
            spec = importlib.machinery.PathFinder.find_spec("vllm", path)
            places = list(spec.submodule_search_locations or ()) if spec is not None else []
            manifest = _manifest()
            if places:
                self.settled = settle(manifest["patches"], places[0], sys.modules)
            for state in self.settled.patches.values():
                spec_ = state.spec
                state.waiting = len(spec_["text"]) + len(spec_["rebind"]) + len(spec_["hooks"])
            LEDGER.overhead += time.perf_counter() - began
            # A child of vLLM's that is forked has what its parent had, and imports none of it again.
            register_after_fork(self, Process.forked)
            self._write("start", bundle=manifest["digest"], vllm=manifest["vllm"])
            for state in self.settled.patches.values():
                if not state.alive:
                    self._tell_settled(state)
            # A module that was there before us can still be rebound.
            for module in [name for name in self._targets() if name in sys.modules]:
                self.executed(sys.modules[module], "")

    def spec(self, fullname: str, path: Any) -> Any:
        """The spec of a target module; None leaves it to the others.

        Without the lock: the import system holds the module's own, and whoever holds ours may import.
        """
        began = time.perf_counter()
        if not self._begun:
            self.begin()
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is None or not spec.origin or not spec.origin.endswith(".py"):
            return None
        file = spec.origin
        text = self.settled.texts.get(fullname)
        if text is not None:
            try:
                file = shadow_file(self._shadows, fullname, for_shadow(text))
            except OSError as error:
                self._fail_texts(fullname, "shadow_unwritable", str(error))
                file = spec.origin
        loader = OverlayLoader(fullname, file, spec.origin, self.executed, self.broken)
        found = importlib.util.spec_from_file_location(
            fullname, file, loader=loader, submodule_search_locations=spec.submodule_search_locations
        )
        LEDGER.overhead += time.perf_counter() - began
        return found

    def executed(self, module: Any, origin: str) -> None:
        """A target module was executed: its text edits are in force, its rebinds are done now."""
        with self._lock:
            name = module.__name__
            edited = origin and getattr(module, "__sndr_origin__", "") == origin
            for state in list(self.settled.patches.values()):
                if not state.alive:
                    continue
                if edited:
                    for edit in state.spec["text"]:
                        if edit["module"] == name:
                            self._tell_text(state, name)
                for rebind in state.spec["rebind"]:
                    if rebind["module"] == name and state.alive:
                        self._rebind(state, module, rebind)

    def broken(self, module: str, error: BaseException) -> None:
        """The edited source of a module raised; its own was run instead."""
        detail = "".join(traceback.format_exception(type(error), error, error.__traceback__))[-_TRACEBACK:]
        self._fail_texts(module, "raised", detail)

    def is_alive(self, patch: str) -> bool:
        """Return True if a patch is in force here so far."""
        state = self.settled.patches.get(patch)
        return state is not None and state.alive

    def hooked(self, patch: str, target: str, error: "BaseException | None", began: float) -> None:
        """A hook of a patch was called by vLLM."""
        with self._lock:
            state = self.settled.patches.get(patch)
            if state is None:
                return
            spent = time.perf_counter() - began
            LEDGER.overhead += spent
            if error is None:
                state.called = True
                self._tell(state, "hook", target, APPLIED, ms=spent * 1000)
            else:
                self._fail(state, "hook", target, "raised", _told(error), spent * 1000)

    def forked(self) -> None:
        """This process was forked by multiprocessing: it says what it has, in a ledger of its own."""
        self._lock = threading.RLock()
        LEDGER.overhead = 0.0
        COUNTS.clear()
        if role()[0] == HELPER or not self._said:
            return
        for event, fields in self._said:
            LEDGER.write(event, **fields)
        if any(event == "result" for event, _ in self._said):
            probe.serve(self)

    def _write(self, event: str, **fields: Any) -> None:
        self._said.append((event, fields))
        LEDGER.write(event, **fields)

    def _rebind(self, state: State, module: Any, rebind: "dict[str, Any]") -> None:
        began = time.perf_counter()
        target = f"{rebind['module']}:{rebind['target']}"
        missing = next((name for name in state.spec["requires"] if not self.is_alive(name)), None)
        try:
            if missing is not None:
                raise RefusedError("requirement_skipped", f"it requires {missing}")
            binding = bind(module, state.id, rebind)
        except RefusedError as error:
            spent = time.perf_counter() - began
            LEDGER.overhead += spent
            self._fail(state, "rebind", target, error.reason, str(error), spent * 1000)
        except Exception as error:  # noqa: BLE001 - a patch's error is its ledger entry, never the engine's end
            spent = time.perf_counter() - began
            LEDGER.overhead += spent
            self._fail(state, "rebind", target, "raised", _told(error), spent * 1000)
        else:
            state.done.append(binding)
            spent = time.perf_counter() - began
            LEDGER.overhead += spent
            self._tell(state, "rebind", target, APPLIED, ms=spent * 1000)

    def _tell_text(self, state: State, module: str) -> None:
        self._tell(
            state,
            "text",
            module,
            APPLIED,
            before=digest(self.settled.sources[module]),
            after=digest(for_shadow(self.settled.texts[module])),
            ms=state.took[module] * 1000,
        )

    def _tell(self, state: State, op: str, target: str, outcome: str, **fields: Any) -> None:
        self._write("result", patch=state.id, op=op, target=target, outcome=outcome, reason=None, **fields)
        probe.serve(self)
        state.waiting -= 1
        if state.waiting == 0 and state.alive:
            state.outcome = APPLIED
            self._tell_settled(state)

    def _fail(self, state: State, op: str, target: str, reason: str, detail: str, ms: float) -> None:
        """An operation did not go in: the patch is out, and its earlier rebinds are taken back."""
        outcome = FAILED if reason in {"raised", "shadow_unwritable"} else SKIPPED
        self._write(
            "result",
            patch=state.id,
            op=op,
            target=target,
            outcome=outcome,
            reason=reason,
            ms=ms,
            detail=detail,
        )
        self._out(state, outcome, reason, detail)

    def _out(self, state: State, outcome: str, reason: str, detail: str) -> None:
        state.alive = False
        for binding in reversed(state.done):
            for other in self.settled.patches.values():
                if other.alive and any(above.wraps(binding) for above in other.done):
                    self._out(other, SKIPPED, "requirement_skipped", f"it wraps what {state.id} replaced")
            binding.undo()
            undone = f"{binding.module}:{binding.target}"
            self._write("result", patch=state.id, op="rebind", target=undone, outcome=REVERTED, reason=reason)
        state.done.clear()
        state.outcome, state.reason, state.detail = outcome, reason, detail[-400:]
        self._tell_settled(state)
        for other in self.settled.patches.values():
            if state.id in other.spec["requires"] and other.alive:
                self._out(other, SKIPPED, "requirement_skipped", f"it requires {state.id}")
        for other, why in without_edits(self.settled, state, sys.modules):
            self._out(other, SKIPPED, "anchor_missing", why)

    def _fail_texts(self, module: str, reason: str, detail: str) -> None:
        with self._lock:
            self.settled.texts.pop(module, None)
            for state in list(self.settled.patches.values()):
                if state.alive and any(edit["module"] == module for edit in state.spec["text"]):
                    self._fail(state, "text", module, reason, detail, 0.0)

    def _targets(self) -> "set[str]":
        return {
            operation["module"]
            for state in self.settled.patches.values()
            for operation in (*state.spec["text"], *state.spec["rebind"])
        }

    def _tell_settled(self, state: State) -> None:
        self._write(
            "settled", patch=state.id, outcome=state.outcome, reason=state.reason, detail=state.detail
        )


def _told(error: BaseException) -> str:
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))[-_TRACEBACK:]


def _manifest() -> "dict[str, Any]":
    path = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "manifest.json")
    with open(path, encoding="utf-8") as file:
        manifest: dict[str, Any] = json.load(file)
    return manifest


PROCESS = Process()
