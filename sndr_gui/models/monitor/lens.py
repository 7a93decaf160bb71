"""The view-model of the prefix lens: conversations, and how each turn reused the prompt before it."""

from __future__ import annotations

import time

from PySide6.QtCore import QObject, Signal

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.client.request_words import turn_text
from engine_host.protocol.endpoint.requests import Conversation, ConversationQuery, PrefixReason, PrefixTurn
from engine_host.protocol.engines import Request
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations.definition import Nothing
from sndr_gui.host.session import Session
from sndr_gui.host.state import OPEN_REQUESTS
from sndr_gui.kit import formats
from sndr_gui.kit.rows import Column, RowsModel
from sndr_gui.models.window.throttle import Throttle

_BARS = 24
_FINE = {PrefixReason.REUSED, PrefixReason.FIRST_TURN, PrefixReason.CHECKPOINT}


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))


def _muted(_row: object) -> str:
    return "muted"


def name_of(one: Conversation) -> str:
    """Return the name by which a conversation is shown: the beginning of its own name, and whose it is."""
    return " · ".join(filter(None, (f"{one.label}…" if one.label else one.id, one.client)))


def conversation_columns() -> list[Column[Conversation]]:
    """Return the columns of the list of conversations."""
    return [
        Column(tr("Last turn"), lambda c: _clock(c.last_at), lambda c: c.last_at, _muted),
        Column(
            tr("Conversation"),
            name_of,
            tip=lambda c: tr(
                "{name_of}, {id}, named by {source}", name_of=name_of(c), id=c.id, source=c.source
            ),
        ),
        Column(tr("Turns"), lambda c: str(c.count), lambda c: c.count, _muted, right=True),
        Column(
            tr("Reused"),
            lambda c: formats.percent(c.cached_tokens, c.prompt_tokens) if c.measured else formats.UNMEASURED,
            lambda c: c.cached_tokens / c.prompt_tokens if c.prompt_tokens else 0,
            right=True,
        ),
        Column(
            tr("Lost"), lambda c: formats.duration(c.lost_seconds), lambda c: c.lost_seconds or 0, right=True
        ),
    ]


def turn_columns() -> list[Column[PrefixTurn]]:
    """Return the columns of a conversation's turns."""
    return [
        Column(tr("Time"), lambda t: _clock(t.at), lambda t: t.at, _muted),
        Column(
            tr("In"), lambda t: formats.count(t.prompt_tokens), lambda t: t.prompt_tokens or 0, right=True
        ),
        Column(
            tr("Cached"), lambda t: formats.count(t.cached_tokens), lambda t: t.cached_tokens or 0, right=True
        ),
        Column(
            tr("Recomputed"), lambda t: formats.count(t.read_again), lambda t: t.read_again or 0, right=True
        ),
        Column(
            tr("Lost"), lambda t: formats.duration(t.lost_seconds), lambda t: t.lost_seconds or 0, right=True
        ),
        Column(
            tr("Prefix"),
            turn_text,
            None,
            lambda t: "muted" if t.side else "good" if t.reason in _FINE else "warn",
            tip=turn_text,
        ),
    ]


class LensModel(QObject):
    """The model of the prefix lens.

    Signals:
        changed: the conversations are new, or another one is chosen
    """

    changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.loaded = False
        self.chosen = ""
        self.conversations: RowsModel[Conversation] = RowsModel(conversation_columns(), lambda c: c.id, self)
        self.turns: RowsModel[PrefixTurn] = RowsModel(turn_columns(), lambda t: t.request, self)
        self._shown = False
        self._read: Conversation | None = None
        self._throttle = Throttle(self, 1000, self.load)
        session.state.request_changed.connect(self._on_request)

    def set_shown(self, shown: bool) -> None:
        """Read the conversations only while somebody looks."""
        self._shown = shown
        if shown:
            self.load()

    def load(self) -> None:
        """Read the conversations, and the turns of the one that is shown."""

        async def work(client: AsyncControlClient) -> None:
            page = await client.call(endpoint_ops.CONVERSATIONS, ConversationQuery())
            self.loaded = True
            self.conversations.set_rows(page.conversations)
            self._show_turns()
            await self._read_turns(client)

        if self._shown and self.session.connection.connected:
            self.session.read("conversations", work)

    def choose(self, conversation: str) -> None:
        """Show the turns of a conversation."""
        if conversation != self.chosen:
            self.chosen = conversation
            self._show_turns()
            if self.session.connection.connected:
                self.session.read("conversation", self._read_turns)

    @property
    def conversation(self) -> Conversation | None:
        """The conversation whose turns are shown: the chosen one, else the newest."""
        place = self.conversations.place_of(self.chosen)
        return self.conversations.row_at(place if place is not None else 0)

    def shares(self) -> tuple[float | None, ...]:
        """Return the reused share of the prompt of the newest turns, oldest first; None is not measured."""
        return tuple(
            formats.share_of(turn.cached_tokens, turn.prompt_tokens)
            if turn.prompt_tokens and turn.cached_tokens is not None
            else None
            for turn in self._turns[-_BARS:]
        )

    async def _read_turns(self, client: AsyncControlClient) -> None:
        one = self.conversation
        if one is None:
            return
        try:
            read = await client.call(endpoint_ops.CONVERSATION, Nothing(), id=one.id)
        except HostError as error:
            # It made room for newer ones; the next list is without it.
            if error.problem.reason is not Reason.NOT_FOUND:
                raise
            return
        shown = self.conversation
        if shown is not None and shown.id == read.id:
            self._read = read
            self._show_turns()

    @property
    def _turns(self) -> tuple[PrefixTurn, ...]:
        """The turns of the conversation that is shown, as far as they are read."""
        one, read = self.conversation, self._read
        return read.turns if one is not None and read is not None and read.id == one.id else ()

    def _show_turns(self) -> None:
        self.turns.set_rows(self._turns[::-1])
        self.changed.emit()

    def _on_request(self, request: Request) -> None:
        if self._shown and request.state not in OPEN_REQUESTS:
            self._throttle.trigger()
