"""Prometheus' text format: families written so that nothing in them can break it.

Source: prometheus.io/docs/instrumenting/exposition_formats. All lines of a family stand together, a series
stands once, and names and labels are of their letters; whatever is not is left out.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,199}", re.ASCII)
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,99}", re.ASCII)
_SUFFIXES = {
    "histogram": ("_bucket", "_sum", "_count"),
    "summary": ("", "_sum", "_count"),
    "counter": ("", "_total"),
    "gauge": ("",),
    "untyped": ("",),
}
_LONGEST_HELP, _LONGEST_VALUE, _MOST_LABELS = 500, 500, 32


@dataclass(frozen=True)
class Line:
    """One sample: the name in full, its labels and its value."""

    name: str
    labels: Mapping[str, str]
    value: float


@dataclass
class Family:
    """The samples of one name; `kind` is counter, gauge, histogram, summary or untyped."""

    name: str
    kind: str
    help: str
    lines: list[Line] = field(default_factory=list)

    def add(self, value: float, suffix: str = "", **labels: str) -> None:
        """Add a sample."""
        self.lines.append(Line(self.name + suffix, labels, value))


def written(families: Iterable[Family]) -> bytes:
    """Return the text; families of one name become one, and of the same series the first one counts."""
    merged: dict[str, Family] = {}
    for one in families:
        if not _NAME.fullmatch(one.name) or one.kind not in _SUFFIXES:
            continue
        known = merged.setdefault(one.name, Family(one.name, one.kind, one.help))
        if known.kind == one.kind:
            known.lines += one.lines
    return "".join(_family(one) for one in merged.values() if one.lines).encode("utf-8", "replace")


def _family(family: Family) -> str:
    allowed = {family.name + suffix for suffix in _SUFFIXES[family.kind]}
    seen: set[str] = set()
    lines = [
        f"# HELP {family.name} {_escaped(family.help[:_LONGEST_HELP], quotes=False)}\n",
        f"# TYPE {family.name} {family.kind}\n",
    ]
    for line in family.lines:
        series = _series(line) if line.name in allowed else None
        if series is not None and series not in seen:
            seen.add(series)
            lines.append(f"{series} {_number(line.value)}\n")
    return "".join(lines) if len(lines) > 2 else ""


def _series(line: Line) -> str | None:
    """Return a sample's name and labels; None for one that the format has no way to write."""
    if len(line.labels) > _MOST_LABELS or not all(_LABEL.fullmatch(name) for name in line.labels):
        return None
    parts = [f'{name}="{_escaped(value[:_LONGEST_VALUE])}"' for name, value in sorted(line.labels.items())]
    return f"{line.name}{{{','.join(parts)}}}" if parts else line.name


def _escaped(text: str, *, quotes: bool = True) -> str:
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n")
    # Another reader may take a carriage return for the end of a line.
    escaped = escaped.replace("\r", " ")
    return escaped.replace('"', '\\"') if quotes else escaped


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))
