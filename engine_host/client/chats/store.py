"""The files of conversations: one each, for their owner alone, written beside and renamed, so many at most.

The first line of a file is what a list shows, the second the conversation: a list reads no long answers.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from engine_host.client.chats.record import Conversation, is_id, title_of
from engine_host.core import atomic_file
from engine_host.core.errors import HostError
from engine_host.core.outside import files, json_text
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr

MOST = 500
MOST_BYTES = 256 << 20
LARGEST = 32 << 20
_SUFFIX = ".jsonl"
_LONGEST_HEAD = 16 << 10


@dataclass(frozen=True)
class Entry:
    """One conversation in a list."""

    id: str
    title: str
    changed: float
    host: str
    engines: tuple[str, ...]
    messages: int


def new_id() -> str:
    """Return an id that no conversation has yet."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"


class ChatStore:
    """The conversations in a folder; nothing in it is read before it is asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def entries(self) -> tuple[list[Entry], int]:
        """Return the conversations, the newest first, and how many files cannot be read."""
        found, damaged = [], 0
        for path in self._paths():
            try:
                found.append(self._entry(path))
            except (OSError, ValueError):
                damaged += 1
        found.sort(key=lambda entry: (-entry.changed, entry.id))
        return found, damaged

    def ids(self) -> list[str]:
        """Return the ids of all, also of those that cannot be read, the newest first."""
        return sorted((path.stem for path in self._paths()), reverse=True)

    def search(self, words: str) -> tuple[list[Entry], int]:
        """Return the conversations with every one of these words in their title or messages."""
        wanted = words.casefold().split()
        found, damaged = self.entries()
        return [entry for entry in found if self._holds(entry, wanted)], damaged

    def read(self, chat: str) -> Conversation:
        """Return one. Raises HostError(not_found), HostError(unsupported) for a file that is damaged."""
        path = self._path(chat)
        try:
            _head, _, body = files.read(path, LARGEST + _LONGEST_HEAD).partition(b"\n")
            return Conversation.model_validate(json_text.parse_object(body))
        except FileNotFoundError:
            raise self._missing(chat) from None
        except (OSError, ValueError, ValidationError) as error:
            raise HostError(
                Reason.UNSUPPORTED,
                tr("The conversation {chat} cannot be read.", chat=chat),
                cause="Its file is damaged, or of a newer version of this program.",
                fix=Fix(text="Look at the file, or remove it.", command=f"sndr chats remove {chat}"),
                evidence={"path": str(path)},
            ) from error

    def write(self, conversation: Conversation) -> None:
        """Keep one, in place of what it was. The oldest go where there are too many.

        Raises HostError(disk_full), HostError(not_writable), HostError(bad_request) for one that is too long.
        """
        turns = [turn for lane in conversation.lanes for turn in lane.messages]
        head = {
            "id": conversation.id,
            "title": conversation.title,
            "changed": conversation.changed,
            "host": conversation.host,
            "engines": [name[:200] for name in conversation.engines[:8]],
            "messages": len(turns),
        }
        body = conversation.model_dump(mode="json", exclude_defaults=True) | {"format": conversation.format}
        text = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in (head, body))
        data = text.encode("utf-8", "replace")
        if len(data) > LARGEST:
            raise HostError(
                Reason.BAD_REQUEST,
                tr(
                    "This conversation is longer than {largest} MiB; its newest messages are not kept.",
                    largest=LARGEST >> 20,
                ),
                fix="Begin a new chat. Export has all of this one.",
            )
        path = self._path(conversation.id)
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise atomic_file.saving_failed(path, error) from error
        atomic_file.write(path, data, 0o600)
        self._trim(conversation.id)

    def rename(self, chat: str, title: str) -> Conversation:
        """Give one another title. Raises HostError."""
        renamed = self.read(chat).model_copy(update={"title": title_of(title)})
        self.write(renamed)
        return renamed

    def remove(self, chat: str) -> None:
        """Delete one. Raises HostError(not_found), HostError(not_writable)."""
        path = self._path(chat)
        try:
            path.unlink()
        except FileNotFoundError:
            raise self._missing(chat) from None
        except OSError as error:
            raise atomic_file.saving_failed(path, error) from error

    def _paths(self) -> list[Path]:
        try:
            return [path for path in self.folder.iterdir() if path.suffix == _SUFFIX and is_id(path.stem)]
        except OSError:
            return []

    def _path(self, chat: str) -> Path:
        if not is_id(chat):
            raise self._missing(chat)
        return self.folder / f"{chat}{_SUFFIX}"

    def _missing(self, chat: str) -> HostError:
        return HostError(
            Reason.NOT_FOUND,
            tr("There is no conversation {chat}.", chat=chat[:80]),
            cause="It was deleted, or held on another machine or by another user.",
            fix=Fix(text="See which there are.", command="sndr chats list"),
        )

    def _entry(self, path: Path) -> Entry:
        """Read the first line of a file. Raises OSError, ValueError."""
        with files.open_regular(path) as file:
            head = json_text.parse_object(file.readline(_LONGEST_HEAD))
        title, changed, engines = head.get("title"), head.get("changed"), head.get("engines")
        count = head.get("messages")
        if not isinstance(changed, int | float) or isinstance(changed, bool) or not 0 <= changed < 1e11:
            raise ValueError("it has no time")
        named = engines if isinstance(engines, list) else []
        return Entry(
            path.stem,
            title_of(title) if isinstance(title, str) else "",
            float(changed),
            head["host"] if isinstance(head.get("host"), str) else "",
            tuple(name for name in named if isinstance(name, str)),
            count if isinstance(count, int) else 0,
        )

    def _holds(self, entry: Entry, wanted: Iterable[str]) -> bool:
        missing = [word for word in wanted if word not in entry.title.casefold()]
        if not missing:
            return True
        try:
            read = self.read(entry.id)
        except HostError:
            return False
        texts = [turn.text.casefold() for lane in read.lanes for turn in lane.messages]
        return all(any(word in text for text in texts) for word in missing)

    def _trim(self, kept: str) -> None:
        """Delete the oldest where there are too many, or too much of them."""
        aged = []
        for path in self._paths():
            with contextlib.suppress(OSError):
                info = os.stat(path)
                aged.append((path.stem == kept, info.st_mtime, info.st_size, path))
        aged.sort(reverse=True)
        total = 0
        for number, (_own, _at, size, path) in enumerate(aged):
            total += size
            if number and (number >= MOST or total > MOST_BYTES):
                with contextlib.suppress(OSError):
                    path.unlink()
