"""Applies unified diffs exactly: every hunk at its line, every context line equal, all of a patch or none.

Written here because `patch` is a system package that may be missing and by default accepts a hunk that
matches only roughly, and because the packages that do it in Python report a failure without the hunk.
"""

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr

PATCHES = Path(__file__).parent / "patches"

_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass(frozen=True, slots=True)
class Hunk:
    """One change: the lines it expects from line `start` (counted from 1), and what they become."""

    number: int
    start: int
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FilePatch:
    """The hunks for one file, `path` relative to the source's top folder."""

    path: PurePosixPath
    hunks: tuple[Hunk, ...]


def patch_files(folder: Path = PATCHES) -> tuple[Path, ...]:
    """The patches of a folder in the order in which they apply."""
    return tuple(sorted(folder.glob("*.patch")))


def parse_patch(text: str, name: str) -> tuple[FilePatch, ...]:
    """Reads a unified diff. Raises `source_patch_failed` for what is not one, or reaches outside."""
    files: list[FilePatch] = []
    path: PurePosixPath | None = None
    hunks: list[Hunk] = []
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if line.startswith("+++ "):
            if path is not None:
                files.append(FilePatch(path, tuple(hunks)))
            path, hunks = _target(line[4:].split("\t")[0].strip(), name), []
        elif header := _HUNK.match(line):
            if path is None:
                raise _failed(name, "", len(hunks) + 1, tr("a hunk comes before the name of its file"))
            lengths = (int(header[2] or "1"), int(header[4] or "1"))
            before, after, at = _body(lines, at, lengths, name, path, len(hunks) + 1)
            hunks.append(Hunk(len(hunks) + 1, int(header[1]), before, after))
    if path is None or not hunks:
        raise _failed(name, str(path or ""), 0, tr("it holds no hunk"))
    return (*files, FilePatch(path, tuple(hunks)))


def _target(text: str, name: str) -> PurePosixPath:
    path = PurePosixPath(text)
    parts = path.parts[1:]
    if path.is_absolute() or ".." in parts or not parts:
        raise _failed(name, text, 0, tr("the path leaves the source folder"))
    return PurePosixPath(*parts)


def _body(
    lines: list[str], at: int, lengths: tuple[int, int], name: str, path: PurePosixPath, number: int
) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    before: list[str] = []
    after: list[str] = []
    while len(before) < lengths[0] or len(after) < lengths[1]:
        if at >= len(lines):
            raise _failed(name, str(path), number, tr("the patch ends in the middle of it"))
        # An editor that strips spaces leaves an empty line where an empty context line was.
        mark, text = (lines[at][:1] or " "), lines[at][1:]
        at += 1
        if mark == "\\":
            continue
        if mark not in " +-":
            raise _failed(name, str(path), number, tr("it holds the line {lines}", lines=repr(lines[at - 1])))
        if mark != "+":
            before.append(text)
        if mark != "-":
            after.append(text)
    if (len(before), len(after)) != lengths:
        raise _failed(name, str(path), number, tr("its lengths are not those of its heading"))
    return tuple(before), tuple(after), at


def apply_patch(patch: Path, source: Path) -> tuple[Path, ...]:
    """Applies one patch to a source folder and gives the files it changed.

    Nothing is written unless every hunk of every file matches. Raises `source_patch_failed` naming the
    patch, the file and the hunk, with the first line that differs in the evidence.
    """
    changed: dict[Path, str] = {}
    for file in parse_patch(patch.read_text(encoding="utf-8"), patch.name):
        target = source / file.path
        if not target.is_file():
            raise _failed(patch.name, str(file.path), file.hunks[0].number, tr("the source has no such file"))
        with target.open(encoding="utf-8", newline="") as stream:
            text = changed.get(target) or stream.read()
        changed[target] = _patched(text, file, patch.name)
    for target, text in changed.items():
        with target.open("w", encoding="utf-8", newline="") as stream:
            stream.write(text)
    return tuple(changed)


def _patched(text: str, file: FilePatch, name: str) -> str:
    end = "\r\n" if "\r\n" in text else "\n"
    lines = text.split(end)
    shift = 0
    for hunk in file.hunks:
        start = hunk.start - 1 + shift
        there = tuple(lines[start : start + len(hunk.before)])
        if there != hunk.before:
            raise _mismatch(there, hunk, file, name)
        lines[start : start + len(hunk.before)] = hunk.after
        shift += len(hunk.after) - len(hunk.before)
    return end.join(lines)


def _mismatch(there: tuple[str, ...], hunk: Hunk, file: FilePatch, name: str) -> HostError:
    padded = (*there, *("",) * (len(hunk.before) - len(there)))
    index = next(n for n, line in enumerate(hunk.before) if n >= len(there) or line != there[n])
    return _failed(
        name,
        str(file.path),
        hunk.number,
        tr("line {start} is different", start=hunk.start + index),
        {"line": hunk.start + index, "expected": hunk.before[index], "found": padded[index]},
    )


def _failed(
    name: str, path: str, hunk: int, detail: str, evidence: dict[str, str | int] | None = None
) -> HostError:
    return HostError(
        Reason.SOURCE_PATCH_FAILED,
        tr(
            "The patch {name} does not apply: hunk {hunk} of {path}: {detail}.",
            name=name,
            hunk=hunk,
            path=path or tr("it"),
            detail=detail,
        ),
        cause="The source is not the version that the patch was made for.",
        fix="Use the pinned source, or renew the patch.",
        evidence={"patch": name, "file": path, "hunk": hunk, **(evidence or {})},
    )
