"""The functions of a patch as its folder has them, read and never run."""

import ast
from dataclasses import dataclass

from engine_host.core.outside import files
from engine_host.overlay.loaded_patch import LoadedPatch

_LARGEST = 1 << 20


@dataclass(frozen=True, slots=True)
class PatchCode:
    """The source of one function of a patch; `fault` says what is wrong with it, where something is."""

    source: str = ""
    fault: str = ""


def read_code(patch: LoadedPatch, reference: str) -> PatchCode:
    """Return the source of `stem:name` in a patch's folder; imported or assigned names have none here."""
    stem, _, name = reference.partition(":")
    file = f"{stem}.py"
    try:
        text = files.read_text(patch.folder / file, _LARGEST)
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        # Python's own parser ends so at brackets in brackets.
        return PatchCode(fault=f"{file} cannot be read: {error}")
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == name:
            return PatchCode(source=ast.get_source_segment(text, node) or "")
    if name in _bound(tree):
        return PatchCode()
    return PatchCode(fault=f"{file} has no {name}")


def _bound(tree: ast.Module) -> set[str]:
    """Names that imports, assignments and definitions below `if` and `try` bind."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found
