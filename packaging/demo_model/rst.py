"""Read the reStructuredText of Python's documentation into directives and plain sentences."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field

DIRECTIVE = re.compile(r"^\.\. ([\w:-]+)::\s*(.*)$")
ROLE = re.compile(r":(?:[\w+-]+:)?[\w+-]+:`([^`]+)`")


@dataclass
class Directive:
    """One directive: its kind (``function``), its argument lines and the dedented text below them."""

    kind: str
    arguments: list[str]
    body: str
    options: dict[str, str] = field(default_factory=dict)


def role_text(match: re.Match[str]) -> str:
    """Return the visible text of one inline role, as code where it names code."""
    text = match.group(1)
    titled = re.fullmatch(r"(.*?)\s*<[^>]*>", text, re.DOTALL)
    if titled:
        return titled.group(1)
    if match.group(0).startswith((":term:", ":ref:", ":rfc:", ":pep:", ":dfn:", ":doc:")):
        prefix = {":rfc:": "RFC ", ":pep:": "PEP "}.get(match.group(0)[:5], "")
        return prefix + text
    name = text.removeprefix("!")
    if name.startswith("~"):
        name = name[1:].rpartition(".")[2]
    if match.group(0).startswith((":func:", ":meth:")) and not name.endswith(")"):
        name += "()"
    return f"`{name}`"


def emphasis(match: re.Match[str]) -> str:
    """Return emphasised text as code if it may name a parameter, else plain."""
    word = match.group(1)
    plain = (
        " " in word
        or word.endswith("ly")
        or word
        in (
            "not",
            "all",
            "any",
            "must",
            "only",
            "and",
            "or",
            "automatic",
            "very",
            "same",
            "never",
            "always",
            "is",
            "no",
            "both",
            "every",
        )
    )
    return word if plain else f"`{word}`"


def inline(text: str) -> str:
    """Return one paragraph as plain Markdown on a single line."""
    text = re.sub(r"\s*\n\s*", " ", text.strip())
    text = ROLE.sub(role_text, text)
    text = re.sub(r"``([^`]+)``", r"`\1`", text)
    text = re.sub(r"\*((?:\\\*)+\w+)\*", lambda m: "`" + m.group(1).replace("\\", "") + "`", text)
    text = re.sub(r"(?<![\w*])\*([A-Za-z_][\w ]*)\*(?![\w*])", emphasis, text)
    text = re.sub(r"`([^`<]+?)\s*<[^`>]+>`_{1,2}", r"\1", text)
    text = re.sub(r"\|(\w+)\|", r"\1", text)
    text = re.sub(r"\[[\w#]+\]_", "", text)
    return text.replace("\\ ", "").replace("\\*", "*").replace("  ", " ").strip()


def split_directives(text: str) -> Iterator[str | Directive]:
    """Yield runs of ordinary text and directives, in order; bodies are not looked into."""
    lines = text.expandtabs(8).split("\n")
    plain: list[str] = []
    i = 0
    while i < len(lines):
        match = DIRECTIVE.match(lines[i])
        if not match:
            if lines[i].startswith(".. "):  # a comment or a target
                i += 1
                while i < len(lines) and (not lines[i].strip() or lines[i].startswith("  ")):
                    i += 1
                continue
            plain.append(lines[i])
            i += 1
            continue
        if plain:
            yield "\n".join(plain)
            plain = []
        block: list[str] = []
        i += 1
        while i < len(lines) and (not lines[i].strip() or lines[i].startswith(" ")):
            block.append(lines[i])
            i += 1
        yield directive(match.group(1), match.group(2), textwrap.dedent("\n".join(block)))
    if plain:
        yield "\n".join(plain)


def directive(kind: str, first: str, block: str) -> Directive:
    """Split the lines below a directive into further arguments, options and body."""
    arguments, options = [first.strip()] if first.strip() else [], {}
    lines = block.split("\n")
    while lines and lines[0].strip():
        option = re.match(r"^:(\w+):\s*(.*)$", lines[0])
        if option:
            options[option.group(1)] = option.group(2)
        elif kind in ("note", "warning", "seealso", "versionchanged", "versionadded", "deprecated"):
            break
        else:
            arguments.append(lines[0].strip())
        lines.pop(0)
    return Directive(kind, arguments, "\n".join(lines).strip("\n"), options)


def blocks(text: str) -> list[tuple[str, str]]:
    """Return (kind, text) of paragraphs, bullets and code in `text`; other directives are left out."""
    out: list[tuple[str, str]] = []
    for part in split_directives(text):
        if isinstance(part, Directive):
            if part.kind in ("code-block", "sourcecode", "testcode", "doctest"):
                out.append(("code", part.body.strip("\n")))
            continue
        out += plain_blocks(part)
    return out


def plain_blocks(text: str) -> list[tuple[str, str]]:
    """Split directive-free text into paragraphs, bullets and literal blocks."""
    out: list[tuple[str, str]] = []
    literal = False
    for chunk in re.split(r"\n\s*\n", text.strip("\n")):
        if not chunk.strip():
            continue
        indented = all(line.startswith(" ") or not line for line in chunk.split("\n"))
        if (literal and indented) or chunk.lstrip().startswith(">>>"):
            code = textwrap.dedent(chunk)
            if out and out[-1][0] == "code" and literal:
                out[-1] = ("code", out[-1][1] + "\n\n" + code)
            else:
                out.append(("code", code))
            continue
        literal = False
        stripped = chunk.strip()
        rows = stripped.split("\n")
        if re.fullmatch(r"([=\-~^\"'*+#.])\1*", rows[-1]) and len(rows) <= 3:
            if len(rows) > 1:
                out.append(("title", inline(rows[-2])))
            continue
        if stripped.startswith(("+-", "|", "==")) or re.match(r":[\w ]+:(\s|$)", stripped):
            continue
        if stripped.endswith("::"):
            literal = True
            stripped = stripped[:-1] if stripped != "::" else ""
        if not stripped:
            continue
        if re.match(r"^[*-] ", stripped):
            for item in re.split(r"\n\s*[*-] ", "\n" + stripped):
                if item.strip():
                    out.append(("bullet", inline(item)))
        else:
            out.append(("paragraph", inline(stripped)))
    return out


def markdown(parts: list[tuple[str, str]], limit: int) -> str:
    """Join blocks as Markdown, stopping before `limit` characters are exceeded (the first block stays)."""
    out: list[str] = []
    size = 0
    for kind, text in parts:
        piece = {"code": f"```python\n{text}\n```", "bullet": f"- {text}", "title": f"**{text}**"}.get(
            kind, text
        )
        if out and size + len(piece) > limit:
            break
        glue = "\n" if out and kind == "bullet" and out[-1].startswith("- ") else "\n\n"
        out.append((glue if out else "") + piece)
        size += len(piece)
    joined = "".join(out)
    joined = joined.rstrip().removesuffix("::").rstrip()
    return joined[:-1] + "." if joined.endswith(":") else joined
