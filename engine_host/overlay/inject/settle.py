"""Decides which patches go in, by the files on disk, before any module is edited."""

import os
import time
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from importlib.util import decode_source
from typing import Any

APPLIED, SKIPPED, FAILED, REVERTED = "applied", "skipped", "failed", "reverted"


@dataclass
class State:
    """One patch in this process; `reason` says why it is not alive."""

    spec: "dict[str, Any]"
    alive: bool = True
    outcome: str = ""
    reason: "str | None" = None
    detail: str = ""
    done: "list[Any]" = field(default_factory=list)
    waiting: int = 0
    # vLLM asked for one of its hooks in this process.
    called: bool = False
    # Seconds that the edits took, by module.
    took: "dict[str, float]" = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The patch's id."""
        return str(self.spec["id"])


@dataclass
class Settled:
    """The decisions for this process: patches in order, and the edited text of each module."""

    patches: "dict[str, State]"
    sources: "dict[str, str]"
    texts: "dict[str, str]"


def module_file(root: str, module: str) -> "str | None":
    """The source file of a module of vLLM below its folder; None when there is none."""
    path = os.path.join(root, *module.split(".")[1:])
    for candidate in (f"{path}.py", os.path.join(path, "__init__.py")):
        if os.path.isfile(candidate):
            return candidate
    return None


def settle(patches: "list[dict[str, Any]]", root: str, loaded: Container[str] = ()) -> Settled:
    """Count every anchor of every patch in the files below `root`; nothing is imported.

    A patch with one anchor that does not fit is left out whole, and so is each that requires it. `loaded`
    are the modules that were there before: their text cannot be edited any more.
    """
    found = Settled({}, {}, {})
    for spec in patches:
        state = found.patches[spec["id"]] = State(spec)
        missing = next((name for name in spec["requires"] if not _alive(found, name)), None)
        if missing is not None:
            _skip(state, "requirement_skipped", f"it requires {missing}")
            continue
        late = next((edit["module"] for edit in spec["text"] if edit["module"] in loaded), None)
        if late is not None:
            _skip(state, "too_late", late)
            continue
        if not (spec["text"] or spec["rebind"] or spec["hooks"]):
            _skip(state, "out_of_range", "it has nothing to do in this version")
            continue
        try:
            edited = _edit(state, found, root)
        except (OSError, SyntaxError, UnicodeDecodeError) as error:
            _skip(state, "module_missing", f"a source cannot be read: {error}")
            continue
        if state.alive:
            found.texts.update(edited)
    return found


def without_edits(found: Settled, out: State, loaded: Container[str]) -> "Iterator[tuple[State, str]]":
    """Take the edits of a patch that is out from the texts of modules that are still to come.

    Gives each other patch whose anchors were in what this one wrote, and why it cannot stay.
    """
    for module in dict.fromkeys(edit["module"] for edit in out.spec["text"]):
        if module in loaded or module not in found.texts:
            continue
        text = found.sources[module]
        for state in list(found.patches.values()):
            before = text
            for edit in state.spec["text"] if state.alive else ():
                if edit["module"] != module:
                    continue
                if text.count(edit["find"]) != edit["count"]:
                    yield state, f"{module}: its anchor was in what {out.id} wrote"
                    text = before
                    break
                text = text.replace(edit["find"], edit["replace"])
        if text == found.sources[module]:
            found.texts.pop(module, None)
        else:
            found.texts[module] = text


def _alive(found: Settled, patch: str) -> bool:
    state = found.patches.get(patch)
    return state is not None and state.alive


def _skip(state: State, reason: str, detail: str) -> None:
    state.alive = False
    state.outcome, state.reason, state.detail = SKIPPED, reason, detail


def _source(found: Settled, root: str, module: str) -> "str | None":
    if module not in found.sources:
        path = module_file(root, module)
        if path is None:
            return None
        with open(path, "rb") as file:
            found.sources[module] = decode_source(file.read())
    return found.sources[module]


def _edit(state: State, found: Settled, root: str) -> "dict[str, str]":
    merged = state.spec.get("merged")
    if merged is not None and merged["text"] in (_source(found, root, merged["module"]) or ""):
        _skip(state, "upstream_merged", f"{merged['module']} has {merged['text'][:80]!r}")
        return {}
    edited: dict[str, str] = {}
    for edit in state.spec["text"]:
        module = edit["module"]
        began = time.perf_counter()
        source = edited.get(module) or found.texts.get(module) or _source(found, root, module)
        if source is None:
            _skip(state, "module_missing", module)
            return {}
        times = source.count(edit["find"])
        if times != edit["count"]:
            reason = "anchor_missing" if times < edit["count"] else "anchor_ambiguous"
            _skip(state, reason, f"{module}: found {times} times, wanted {edit['count']}")
            return {}
        edited[module] = source.replace(edit["find"], edit["replace"])
        state.took[module] = state.took.get(module, 0.0) + time.perf_counter() - began
    for rebind in state.spec["rebind"]:
        if module_file(root, rebind["module"]) is None:
            _skip(state, "module_missing", rebind["module"])
            return {}
    return edited
