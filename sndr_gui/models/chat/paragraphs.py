"""Cuts a growing Markdown text into paragraphs that have ended and the one that still grows."""

LONGEST = 3000
"""Characters of a paragraph that does not end; drawing a longer one costs more with every word."""


def split_finished(text: str) -> tuple[list[str], str]:
    """Return the paragraphs of a text that have ended, and its unfinished rest.

    A code block is one paragraph and ends with its closing fence, so that blank lines in it stay in it. A
    list ends only where something that is no part of it begins.
    """
    done: list[str] = []
    lines: list[str] = []
    fence = ""
    complete, newline, tail = text.rpartition("\n")
    for line in complete.split("\n") if newline else ():
        mark = _fence(line)
        if fence:
            lines.append(line)
            if mark.startswith(fence) and not line.strip().strip("`~"):
                done.append("\n".join(lines))
                lines, fence = [], ""
        elif mark:
            if any(entry.strip() for entry in lines):
                done.append("\n".join(lines))
            lines, fence = [line], mark
        elif not line.strip() and not _is_list(lines):
            if any(entry.strip() for entry in lines):
                done.append("\n".join(lines))
            lines = []
        elif _is_list(lines) and not lines[-1].strip() and not _continues_list(line) and line.strip():
            done.append("\n".join(lines).rstrip())
            lines = [line]
        else:
            lines.append(line)
    rest = "\n".join([*lines, tail]) if newline else text
    while not fence and len(rest) > LONGEST:
        cut = max(rest.rfind(" ", 0, LONGEST), rest.rfind("\n", 0, LONGEST)) + 1 or LONGEST
        done.append(rest[:cut])
        rest = rest[cut:]
    return done, rest


def _fence(line: str) -> str:
    bare = line.lstrip()
    for mark in ("```", "~~~"):
        if bare.startswith(mark):
            return mark
    return ""


def _is_list(lines: list[str]) -> bool:
    return bool(lines) and _starts_item(lines[0])


def _continues_list(line: str) -> bool:
    return _starts_item(line) or line.startswith(("  ", "\t"))


def _starts_item(line: str) -> bool:
    bare = line.lstrip()
    head, _, rest = bare.partition(" ")
    return bool(rest) and (head in ("-", "*", "+") or (head[:-1].isdigit() and head[-1:] in (".", ")")))
