"""Texts of presets that are not saved yet, kept in a file of the window so that closing it loses nothing."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter

from sndr_gui.kit.atomic_file import write_atomically

_MOST = 50


@dataclass(frozen=True)
class Draft:
    """An unsaved text; `saved` and `digest` are of the file that it began from, None for a new preset."""

    id: str
    text: str
    saved: str = ""
    digest: str | None = None
    at: float = 0.0


_FILE = TypeAdapter(dict[str, tuple[Draft, ...]])


class Drafts:
    """The drafts by preset; a file that holds something else is put aside, and there are none."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._all = {draft.id: draft for draft in self._read()}

    def _read(self) -> list[Draft]:
        try:
            return list(_FILE.validate_json(self._path.read_bytes())["drafts"])
        except OSError:
            return []
        except (ValueError, KeyError):
            with contextlib.suppress(OSError):
                self._path.replace(self._path.with_name(f"{self._path.name}.damaged"))
            return []

    @property
    def all(self) -> tuple[Draft, ...]:
        """Every draft, newest first."""
        return tuple(sorted(self._all.values(), key=lambda draft: -draft.at))

    def get(self, preset: str) -> Draft | None:
        """Return the draft of a preset."""
        return self._all.get(preset)

    def keep(self, draft: Draft) -> None:
        """Keep a draft in place of the one of the same preset. Raises OSError."""
        if self._all.get(draft.id) != draft:
            self._all[draft.id] = draft
            self._write()

    def drop(self, preset: str) -> None:
        """Forget a draft. Raises OSError."""
        if self._all.pop(preset, None) is not None:
            self._write()

    def _write(self) -> None:
        content = {"drafts": [asdict(draft) for draft in self.all[:_MOST]]}
        write_atomically(self._path, json.dumps(content))
