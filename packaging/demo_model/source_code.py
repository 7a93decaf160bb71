"""Python's own library as text to continue and as gaps to fill (PSF licence)."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator
from pathlib import Path

LEFT_OUT = re.compile(
    r"(^|/)(test|tests|idle_test|lib2to3|idlelib|turtledemo|site-packages|__pycache__|pydoc_data)(/|$)"
)


def files(folder: Path) -> list[Path]:
    """Return the library's modules below `folder` without tests and tables."""
    out = []
    for file in sorted(folder.rglob("*.py")):
        relative = file.relative_to(folder).as_posix()
        if not LEFT_OUT.search(relative) and file.stat().st_size < 250_000 and "encodings/" not in relative:
            out.append(file)
    return out


def functions(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield (name, docstring, source) of the documented functions of one module, methods included."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    lines = text.split("\n")
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
            doc = ast.get_docstring(node)
            source = "\n".join(lines[node.lineno - 1 : node.end_lineno])
            if doc and 60 < len(source) < 2500:
                yield node.name, doc, source


def gap(text: str, rng: random.Random) -> tuple[str, str, str]:
    """Cut a passage of `text` into prefix, middle and suffix, as an editor's cursor would."""
    lines = text.split("\n")
    style = rng.random()
    if style < 0.45 and len(lines) > 4:  # some whole lines
        start = rng.randrange(1, len(lines) - 1)
        end = min(len(lines), start + rng.choice([1, 1, 1, 2, 3, 5]))
        return "\n".join(lines[:start]) + "\n", "\n".join(lines[start:end]) + "\n", "\n".join(lines[end:])
    if style < 0.9:  # the rest of a line, indentation kept before the cursor
        candidates = [i for i, line in enumerate(lines) if len(line.strip()) > 6] or [0]
        row = rng.choice(candidates)
        line = lines[row]
        indent = len(line) - len(line.lstrip())
        column = rng.choice([indent, rng.randint(indent, max(indent, len(line) - 2))])
        before, after = "\n".join([*lines[:row], line[:column]]), "\n".join(lines[row + 1 :])
        if rng.random() < 0.2:  # at the end of what is written so far
            return before, line[column:] + "\n" + "\n".join(lines[row + 1 : row + 9]), ""
        return before, line[column:], "\n" + after
    start = rng.randrange(max(1, len(text) - 10))
    end = min(len(text), start + rng.randint(5, 200))
    return text[:start], text[start:end], text[end:]


def passages(text: str, rng: random.Random, size: int) -> Iterator[str]:
    """Cut a module into runs of whole lines of about `size` characters, from a random phase."""
    lines = text.split("\n")
    current: list[str] = []
    length, wanted = 0, rng.randint(size // 3, size)
    for line in lines:
        current.append(line)
        length += len(line) + 1
        if length > wanted and (not line.strip() or length > 1.5 * wanted):
            yield "\n".join(current)
            current, length, wanted = [], 0, rng.randint(size // 3, size)
    if length > 80:
        yield "\n".join(current)
