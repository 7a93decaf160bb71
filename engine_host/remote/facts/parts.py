"""The output of the program that reads facts, cut into its parts; a machine may print anything in them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from engine_host.core.visible import visible

_LONGEST_PART = 512 << 10
_LONGEST_PROBLEM = 300


@dataclass(frozen=True)
class Part:
    """The text that one part printed, and its exit code; None for one that did not come to its end."""

    text: str
    code: int | None

    @property
    def problem(self) -> str | None:
        """Return why it says nothing; None where it does."""
        if self.code == 0:
            return None
        last = next((line for line in reversed(self.text.splitlines()) if line.strip()), "")
        if self.code is None:
            return "it did not come to its end"
        return visible(last.strip())[:_LONGEST_PROBLEM] or f"it ended with code {self.code}"


def parts_of(printed: str, mark: str) -> Mapping[str, Part]:
    """Return the parts by name, the first of each name."""
    found: dict[str, Part] = {}
    edge = re.compile(rf"^{re.escape(mark)} (begin|end) (\S+)$", re.MULTILINE)
    name, start = "", 0
    for one in edge.finditer(printed):
        if one[1] == "begin":
            name, start = one[2], one.end()
        elif name:
            code = int(one[2]) if one[2].isdecimal() and len(one[2]) < 4 else None
            found.setdefault(name, Part(_cut(printed[start : one.start()]), code))
            name = ""
    if name:
        found.setdefault(name, Part(_cut(printed[start:]), None))
    return found


def _cut(text: str) -> str:
    return text[:_LONGEST_PART].strip("\n")
