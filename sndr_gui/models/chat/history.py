"""The conversations that are kept: their list, its search, and what is written, in a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from threading import Lock

from PySide6.QtCore import QObject, Signal

from engine_host.client import HostError
from engine_host.client.chats import export
from engine_host.client.chats.record import Conversation
from engine_host.client.chats.store import ChatStore, Entry
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr
from sndr_gui.host.session import Session
from sndr_gui.kit.settings import SettingsFile
from sndr_gui.models.settings.page import save_window_settings


class HistoryModel(QObject):
    """The kept conversations of one host.

    Signals:
        changed: the list, the search or the switch is new
        removed: the id of a conversation that was deleted
        renamed: an id and its title
    """

    changed = Signal()
    removed = Signal(str)
    renamed = Signal(str, str)

    def __init__(self, session: Session, file: SettingsFile, store: ChatStore) -> None:
        super().__init__()
        self._session, self._file, self._store = session, file, store
        self.entries: list[Entry] = []
        self.damaged = 0
        self.words = ""
        self.loaded = False
        self._waiting: dict[str, Conversation] = {}
        self._writing = False
        self._asked = 0
        # A file is written, renamed or deleted while nothing else happens to it.
        self._turn = asyncio.Lock()
        self._at_file = Lock()
        self._written: dict[str, float] = {}
        self._gone: set[str] = set()

    # The switches.

    @property
    def keep(self) -> bool:
        """True while conversations are written down."""
        return self._file.current.keep_chats

    @property
    def shown(self) -> bool:
        """True where the list stands beside the conversation."""
        return self._file.current.chat_history_shown

    def set_shown(self, shown: bool) -> None:
        """Show the list beside the conversation, or not."""
        save_window_settings(self._file, self._session.notices.warning, chat_history_shown=shown)
        self.changed.emit()

    @property
    def folder(self) -> str:
        """The folder of the files."""
        return str(self._store.folder)

    # The list.

    def search(self, words: str) -> None:
        """List only conversations that hold these words."""
        self.words = words.strip()
        self.load()

    def load(self) -> None:
        """Read the list anew."""
        self._asked += 1
        self._session.tasks.start(self._load(self._asked), "chat history")

    async def _load(self, asked: int) -> None:
        found, damaged = await asyncio.to_thread(self._read, self.words)
        if asked == self._asked:
            self.entries = [entry for entry in found if entry.host == self._session.host]
            self.damaged, self.loaded = damaged, True
            self.changed.emit()

    def _read(self, words: str) -> tuple[list[Entry], int]:
        return self._store.search(words) if words else self._store.entries()

    def open(self, chat: str, done: Callable[[Conversation], object]) -> None:
        """Read one, and hand it on."""

        async def work() -> None:
            try:
                waiting = self._waiting.get(chat)
                found = await asyncio.to_thread(self._store.read, chat) if waiting is None else waiting
            except HostError as error:
                self._session.notices.problem("chat history", error.problem)
                self.load()
            else:
                done(found)

        self._session.tasks.start(work(), "open a conversation")

    def rename(self, chat: str, title: str) -> None:
        """Give one another title; an empty one changes nothing."""
        if title.strip():
            self._change(chat, lambda: self._store.rename(chat, title).title, self.renamed.emit)

    def remove(self, chat: str) -> None:
        """Delete one; the notice about it brings it back."""
        waiting = self._waiting.pop(chat, None)
        # An answer that still comes must not bring it back.
        self._gone.add(chat)

        def work() -> Conversation:
            try:
                kept = waiting or self._store.read(chat)
                self._store.remove(chat)
            except HostError as error:
                if waiting is None or error.reason is not Reason.NOT_FOUND:
                    raise
                # It was not written down yet.
                kept = waiting
            return kept

        def done(_chat: str, kept: Conversation) -> None:
            self.removed.emit(chat)
            self._session.notices.info(
                "chat removed",
                tr("“{title}” is deleted.", title=kept.title),
                action_text=tr("Undo"),
                action=lambda: self.save(kept, again=True),
            )

        self._change(chat, work, done)

    def _change(self, chat: str, work: Callable[[], object], done: Callable[..., object]) -> None:
        async def change() -> None:
            try:
                async with self._turn:
                    result = await asyncio.to_thread(work)
            except HostError as error:
                self._session.notices.problem("chat history", error.problem)
            else:
                done(chat, result)
            self.load()

        self._session.tasks.start(change(), "chat history")

    # Writing.

    def save(self, conversation: Conversation, *, again: bool = False) -> None:
        """Write one down, unless that is switched off; of several states of one the newest.

        `again` brings one back that was deleted, which is never switched off.
        """
        if again:
            self._gone.discard(conversation.id)
        elif not self.keep or conversation.id in self._gone:
            return
        self._waiting[conversation.id] = conversation
        if not self._writing:
            self._writing = True
            task = self._session.tasks.start(self._write(), "keep a conversation")
            if task.cancelled():
                # The window goes: what came last is written before it does.
                self._write_now()
            else:
                task.add_done_callback(self._on_written)

    async def _write(self) -> None:
        try:
            while self._waiting:
                at_work = self._waiting[next(iter(self._waiting))]
                async with self._turn:
                    if self._waiting.get(at_work.id) is at_work:
                        self._report(await asyncio.to_thread(self._try_to_write, at_work))
                if self._waiting.get(at_work.id) is at_work:
                    del self._waiting[at_work.id]
        finally:
            # Cancelled, the window goes: what waits is written here.
            self._write_now()
        self.load()

    def _on_written(self, task: asyncio.Future[None]) -> None:
        # One that was cancelled before its first step has run no line of its own.
        if task.cancelled():
            self._write_now()

    def _write_now(self) -> None:
        for conversation in list(self._waiting.values()):
            self._report(self._try_to_write(conversation))
        self._waiting.clear()
        self._writing = False

    def _try_to_write(self, conversation: Conversation) -> HostError | None:
        """Write one, unless a newer state of it is there already; may be called in any thread."""
        with self._at_file:
            if conversation.changed < self._written.get(conversation.id, 0.0):
                return None
            try:
                self._store.write(conversation)
            except HostError as error:
                return error
            self._written[conversation.id] = conversation.changed
            return None

    def _report(self, error: HostError | None) -> None:
        if error is not None:
            self._session.notices.problem("chat history", error.problem)

    def export(self, conversation: Conversation, path: str) -> None:
        """Write one to a file, as JSON where its name ends so, else as Markdown."""

        async def work() -> None:
            as_text = export.as_json if path.casefold().endswith(".json") else export.as_markdown

            def write() -> None:
                export.write(Path(path), as_text(conversation))

            try:
                await asyncio.to_thread(write)
            except HostError as error:
                self._session.notices.problem("chat export", error.problem)
            else:
                self._session.notices.info(
                    "chat export", tr("The conversation is saved as {path}.", path=path)
                )

        self._session.tasks.start(work(), "export a conversation")
