"""Preflight of patches against vLLM's sources, without an engine: does each still fit?"""

import ast
import difflib
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeVar

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from engine_host.overlay.inject.signatures import of_source
from engine_host.overlay.loaded_patch import LoadedPatch
from engine_host.overlay.patch_catalog import PatchCatalog
from engine_host.overlay.patch_code import read_code
from engine_host.overlay.patch_file import Hook, Rebind, TextEdit
from engine_host.overlay.sources import VllmSource
from engine_host.protocol.language import tr
from engine_host.protocol.patches import (
    CheckVerdict,
    OperationCheck,
    PatchCheck,
    PatchKind,
    PatchOperation,
    PatchReason,
)

_CONTEXT_LINES = 3
# Lines of an anchor.
_MOST_COMPARED = 200
Function = ast.FunctionDef | ast.AsyncFunctionDef
Operation = TypeVar("Operation", TextEdit, Rebind, Hook)


def check(patch_catalog: PatchCatalog, source: VllmSource) -> tuple[PatchCheck, ...]:
    """Preflight of the whole catalogue against one vLLM.

    Text edits are checked on the text that the patches before them leave, as they meet it in an engine.
    """
    texts: dict[str, str] = {}
    return tuple(check_patch(patch_catalog, patch, source, texts) for patch in patch_catalog.patches.values())


def check_patch(
    patch_catalog: PatchCatalog, patch: LoadedPatch, source: VllmSource, texts: dict[str, str]
) -> PatchCheck:
    """Preflight of one patch; `texts` holds what patches before it made of modules and gets its edits."""
    needed_by = patch_catalog.needed_by(patch.id)
    base = Version(source.version).base_version
    if not SpecifierSet(patch.file.applies_to.vllm).contains(base, prereleases=True):
        return PatchCheck(
            patch=patch.id,
            verdict=CheckVerdict.OUT_OF_RANGE,
            reason=PatchReason.OUT_OF_RANGE,
            needed_by=needed_by,
        )
    merged = patch.file.upstream_merged
    if merged is not None and merged.text in (source.read(merged.module) or ""):
        return PatchCheck(
            patch=patch.id,
            verdict=CheckVerdict.UPSTREAM_MERGED,
            reason=PatchReason.UPSTREAM_MERGED,
            needed_by=needed_by,
        )
    edited: dict[str, str] = {}
    checks = [_text(edit, source, texts, edited) for edit in in_version(patch.file.text, base)]
    checks += [_rebind(patch, one, source, texts | edited) for one in in_version(patch.file.rebind, base)]
    checks += [_hook(patch, one) for one in in_version(patch.file.hook, base)]
    if not checks:
        return PatchCheck(
            patch=patch.id,
            verdict=CheckVerdict.OUT_OF_RANGE,
            reason=PatchReason.OUT_OF_RANGE,
            needed_by=needed_by,
        )
    wrong = next((one for one in checks if one.verdict is not CheckVerdict.APPLIES), None)
    if wrong is None:
        texts.update(edited)
    return PatchCheck(
        patch=patch.id,
        verdict=wrong.verdict if wrong else CheckVerdict.APPLIES,
        reason=wrong.reason if wrong else None,
        operations=tuple(checks),
        needed_by=needed_by,
    )


def operations(patch: LoadedPatch, source: VllmSource | None) -> tuple[PatchOperation, ...]:
    """Return the operations of a patch, with the diff of each edit as it is in this vLLM."""
    found: list[PatchOperation] = []
    base = Version(source.version).base_version if source else None
    for edit in in_version(patch.file.text, base):
        text = source.read(edit.module) if source else None
        found.append(
            PatchOperation(
                kind=PatchKind.TEXT, target=edit.module, vllm=edit.vllm, diff=_edit_diff(edit, text)
            )
        )
    for one in in_version(patch.file.rebind, base):
        target = f"{one.module}:{one.target}"
        found.append(
            PatchOperation(
                kind=PatchKind.REBIND, target=target, vllm=one.vllm, diff=_shown(patch, one.replacement)
            )
        )
    for hook in in_version(patch.file.hook, base):
        found.append(
            PatchOperation(
                kind=PatchKind.HOOK, target=hook.point, vllm=hook.vllm, diff=_shown(patch, hook.function)
            )
        )
    return tuple(found)


def in_version(operations: Sequence[Operation], version: str | None) -> list[Operation]:
    """The operations for a version; all of them when there is none."""
    return [
        one
        for one in operations
        if version is None or one.vllm is None or SpecifierSet(one.vllm).contains(version, prereleases=True)
    ]


def _text(
    edit: TextEdit, source: VllmSource, texts: dict[str, str], edited: dict[str, str]
) -> OperationCheck:
    text = edited.get(edit.module) or texts.get(edit.module) or source.read(edit.module)
    if text is None:
        return OperationCheck(
            kind=PatchKind.TEXT,
            target=edit.module,
            verdict=CheckVerdict.TARGET_MISSING,
            reason=PatchReason.MODULE_MISSING,
            detail="this vLLM has no such module",
        )
    times = text.count(edit.find)
    if times == edit.count:
        edited[edit.module] = text.replace(edit.find, edit.replace)
        return OperationCheck(kind=PatchKind.TEXT, target=edit.module, verdict=CheckVerdict.APPLIES)
    missing = times < edit.count
    return OperationCheck(
        kind=PatchKind.TEXT,
        target=edit.module,
        verdict=CheckVerdict.ANCHOR_DRIFT,
        reason=PatchReason.ANCHOR_MISSING if missing else PatchReason.ANCHOR_AMBIGUOUS,
        detail=tr("the anchor is there {times} times, {count} wanted", times=times, count=edit.count),
        nearest=nearest(edit.find, text) if missing else "",
    )


def nearest(anchor: str, text: str) -> str:
    """A diff from an anchor to the passage of a text that is most like it; empty when nothing is.

    An anchor too long to be compared has none.
    """
    expected, lines = anchor.splitlines(), text.splitlines()
    if len(expected) > _MOST_COMPARED:
        return ""
    size = len(expected)
    words = set(anchor.split())
    best, place = 0.0, -1
    # Sharing words is cheap to count and narrows thousands of windows to the few that are compared.
    until = [*itertools.accumulate((len(words & set(line.split())) for line in lines), initial=0)]
    windows = sorted(
        range(max(1, len(lines) - size + 1)),
        key=lambda start: until[start] - until[min(start + size, len(lines))],
    )
    for start in windows[:40]:
        ratio = _alike(anchor, "\n".join(lines[start : start + size]))
        if ratio > best:
            best, place = ratio, start
    if place < 0 or best < 0.4:
        return ""
    return "\n".join(
        difflib.unified_diff(
            expected,
            lines[place : place + size],
            "anchor",
            f"nearest match, line {place + 1}",
            lineterm="",
        )
    )


def _alike(one: str, other: str) -> float:
    """The share of words that two texts have in common; letter by letter it would take ever longer."""
    words = Counter(one.split()), Counter(other.split())
    total = words[0].total() + words[1].total()
    return 2 * (words[0] & words[1]).total() / total if total else 0.0


def _rebind(
    patch: LoadedPatch, rebind: Rebind, source: VllmSource, texts: Mapping[str, str]
) -> OperationCheck:
    target = f"{rebind.module}:{rebind.target}"

    def wrong(verdict: CheckVerdict, reason: PatchReason, detail: str) -> OperationCheck:
        return OperationCheck(
            kind=PatchKind.REBIND, target=target, verdict=verdict, reason=reason, detail=detail
        )

    text = texts.get(rebind.module) or source.read(rebind.module)
    if text is None:
        why = tr("this vLLM has no such module")
        return wrong(CheckVerdict.TARGET_MISSING, PatchReason.MODULE_MISSING, why)
    try:
        function = find_function(text, rebind.target)
    except SyntaxError as error:
        why = tr(
            "line {lineno} of the module, with the edits so far, is not Python: {msg}",
            lineno=error.lineno,
            msg=error.msg,
        )
        return wrong(CheckVerdict.TARGET_MISSING, PatchReason.TARGET_MISSING, why)
    if function is None:
        why = tr("the module has no {target}", target=rebind.target)
        return wrong(CheckVerdict.TARGET_MISSING, PatchReason.TARGET_MISSING, why)
    signature = of_source(function)
    if signature != rebind.signature:
        why = tr(
            "it is {signature}, the patch was written for {signature2}",
            signature=signature,
            signature2=rebind.signature,
        )
        return wrong(CheckVerdict.SIGNATURE_CHANGED, PatchReason.SIGNATURE_CHANGED, why)
    if fault := read_code(patch, rebind.replacement).fault:
        return wrong(CheckVerdict.CODE_BROKEN, PatchReason.RAISED, fault)
    return OperationCheck(kind=PatchKind.REBIND, target=target, verdict=CheckVerdict.APPLIES)


def _hook(patch: LoadedPatch, hook: Hook) -> OperationCheck:
    fault = read_code(patch, hook.function).fault
    return OperationCheck(
        kind=PatchKind.HOOK,
        target=f"{hook.point}:{hook.function}",
        verdict=CheckVerdict.CODE_BROKEN if fault else CheckVerdict.APPLIES,
        reason=PatchReason.RAISED if fault else None,
        detail=fault,
    )


def find_function(text: str, dotted: str) -> Function | None:
    """The function that a dotted name means in a source; the last one where it is defined twice.

    Raises SyntaxError.
    """
    try:
        return _found(ast.parse(text).body, dotted)
    except (ValueError, RecursionError, MemoryError) as error:
        # A NUL, or brackets in brackets: no Python that anybody runs.
        raise SyntaxError(str(error) or "it is nested too deeply") from error


def _found(body: Sequence[ast.stmt], dotted: str) -> Function | None:
    bodies = [body]
    *path, name = dotted.split(".")
    for part in path:
        bodies = [
            node.body
            for body in bodies
            for node in _nodes(body)
            if isinstance(node, ast.ClassDef) and node.name == part
        ]
    found = [
        node
        for body in bodies
        for node in _nodes(body)
        if isinstance(node, Function) and node.name == name and not _is_setter(node)
    ]
    return found[-1] if found else None


def _is_setter(node: Function) -> bool:
    """Return True if a function is the setter of a property: a rebind means the getter."""
    return any(
        isinstance(one, ast.Attribute) and one.attr in {"setter", "deleter"} for one in node.decorator_list
    )


def _nodes(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements of a body, also below `if` and `try`, where platforms are told apart."""
    found: list[ast.stmt] = []
    for node in body:
        found.append(node)
        if isinstance(node, ast.If):
            found += _nodes([*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            handled = [statement for handler in node.handlers for statement in handler.body]
            found += _nodes([*node.body, *handled, *node.orelse, *node.finalbody])
    return found


def _edit_diff(edit: TextEdit, text: str | None) -> str:
    before = text.splitlines() if text and edit.find in text else edit.find.splitlines()
    whole = text if text and edit.find in text else edit.find
    after = whole.replace(edit.find, edit.replace).splitlines()
    path = edit.module.replace(".", "/") + ".py"
    return "\n".join(
        difflib.unified_diff(before, after, f"a/{path}", f"b/{path}", lineterm="", n=_CONTEXT_LINES)
    )


def _shown(patch: LoadedPatch, reference: str) -> str:
    code = read_code(patch, reference)
    return code.fault or code.source
