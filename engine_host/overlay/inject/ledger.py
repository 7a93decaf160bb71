"""The ledger of this process: one JSON object a line, each written at once."""

import json
import os
import time
from typing import Any

from .role import role

_VERSION = 1
# A line is one write; the host keeps what is longer out of its memory too.
_LONGEST_DETAIL = 4_000


class Ledger:
    """Appends to `<folder>/<pid>.jsonl`; after a fork the child has a file of its own."""

    def __init__(self, folder: "str | None") -> None:
        self._folder = folder
        self._pid = 0
        self._file = -1
        self._role: tuple[str, int | None] = ("", None)
        self.overhead = 0.0

    def write(self, event: str, **fields: Any) -> None:
        """Append one line; a folder that cannot be written to must not disturb the engine."""
        if not self._folder:
            return
        try:
            self._open()
            now = role()
            if now != self._role:
                self._role = now
                if event != "start":
                    self._line("role", {})
            self._line(event, fields)
        except OSError:
            self._folder = None

    def _open(self) -> None:
        pid = os.getpid()
        if pid == self._pid:
            return
        if self._file >= 0:
            os.close(self._file)
        path = os.path.join(self._folder or "", f"{pid}.jsonl")
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._pid = pid

    def _line(self, event: str, fields: "dict[str, Any]") -> None:
        if "detail" in fields:
            fields["detail"] = str(fields["detail"])[:_LONGEST_DETAIL]
        line = {
            "v": _VERSION,
            "at": round(time.time(), 3),
            "pid": self._pid,
            "ppid": os.getppid(),
            "role": self._role[0],
            "rank": self._role[1],
            "event": event,
            "overhead_ms": round(self.overhead * 1000, 3),
            **fields,
        }
        os.write(self._file, (json.dumps(line, separators=(",", ":")) + "\n").encode())


LEDGER = Ledger(os.environ.get("SNDR_OVERLAY_LEDGER"))
