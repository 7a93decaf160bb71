"""Stages of a start, read off an engine's log by a table of patterns."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from engine_host.protocol.engines import Attention

LONGEST_MATCHED = 2000
"""Characters of a line that patterns see: engines echo grammars and prompts of any length into their logs."""
MOST_BUFFERS = 64
"""Sizes that are kept of one start; an engine with eight GPUs and a drafter prints about 40."""
NUMBER = r"[0-9]{1,12}(?:\.[0-9]{1,6})?"
"""The pattern of a size as engines print it."""
_MOST_BYTES = 1 << 60


def matched_part(line: str) -> str:
    """Return the part of a log line that patterns are tried on."""
    return line[:LONGEST_MATCHED]


def size_of(number: str, unit: int) -> int:
    """Return the bytes of a printed size; what no machine has is 0."""
    size = round(float(number) * unit)
    return size if size < _MOST_BYTES else 0


@dataclass(frozen=True)
class StageChange:
    """A stage that the engine's own output announced; `buffers` are bytes as it printed them."""

    name: str
    detail: str = ""
    buffers: Mapping[str, int] = field(default_factory=dict)


class StageReader(ABC):
    """Reads the stages of one start; each begins once, and none after the last of the table.

    A pattern may have a group `detail`, or a group `init`: how long the engine says that its initialisation
    took, which spans other stages. `buffers` are bytes by the engine's name for them.
    """

    stages: ClassVar[Sequence[tuple[str, re.Pattern[str]]]]

    def __init__(self) -> None:
        self.buffers: dict[str, int] = {}
        self.attention = Attention()
        self._seen: list[str] = []

    def feed(self, line: str) -> StageChange | None:
        """The stage that this line announces, with the sizes known so far; or new sizes of this one."""
        line = matched_part(line)
        if self.stages[-1][0] not in self._seen:
            # No line of an engine that serves: it may repeat what a request said.
            self.attention = self.attend(line)
        changed = self.measure(line)
        for name, pattern in self.stages if self.stages[-1][0] not in self._seen else ():
            if name not in self._seen and (found := pattern.search(line)) is not None:
                self._seen.append(name)
                return StageChange(name, _said(found), dict(self.buffers))
        if changed and self._seen:
            return StageChange(self._seen[-1], self.detail(), dict(self.buffers))
        return None

    @abstractmethod
    def measure(self, line: str) -> bool:
        """Note the sizes that a line tells; True where one changed."""

    def attend(self, line: str) -> Attention:
        """Return what is known of the attention after this line of the start."""
        return self.attention

    def keep(self, name: str, size: int) -> bool:
        """Note the bytes of a buffer, by its name; False where so many are known that it is no real one."""
        if name not in self.buffers and len(self.buffers) >= MOST_BUFFERS:
            return False
        self.buffers[name] = size
        return True

    def detail(self) -> str:
        """Return the sizes that are known so far, in words."""
        return ""


def _said(found: re.Match[str]) -> str:
    """Return the detail of a stage; beside the stage's own time another one says what it is of."""
    groups = found.groupdict()
    if groups.get("init"):
        return f"engine initialised in {groups['init']}"
    return groups.get("detail") or ""
