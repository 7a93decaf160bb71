"""The conversation that Chat shows: its lanes, its settings, its title, and whether it is kept."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QObject

from engine_host.client.chats import record
from engine_host.client.chats.store import new_id
from engine_host.protocol.engines import Engine
from sndr_gui.host.session import Session
from sndr_gui.models.chat.lane import Lane
from sndr_gui.models.chat.options import Options


class Conversation(QObject):
    """One conversation with one model, or with two side by side."""

    def __init__(
        self,
        session: Session,
        first: Callable[[], Engine | None],
        options: Options,
        kept: record.Conversation | None = None,
    ) -> None:
        super().__init__()
        self._session, self._first = session, first
        self.id = kept.id if kept is not None else new_id()
        self.title = kept.title if kept is not None else ""
        self.created = kept.created if kept is not None else time.time()
        self.changed = kept.changed if kept is not None else self.created
        self.options = Options(kept.system, kept.sampling) if kept is not None else options
        self.lanes = [
            Lane(self, session, first, lane) for lane in (kept.lanes if kept is not None else (None,))
        ]
        self.removed = False
        """Somebody deleted it: an answer that still ends is not kept."""

    @property
    def empty(self) -> bool:
        """True until something was asked."""
        return not any(lane.nodes for lane in self.lanes)

    @property
    def busy(self) -> bool:
        """True while an answer is coming."""
        return any(lane.busy for lane in self.lanes)

    def touch(self) -> None:
        """Note that it changed now, and give it a title from its first question."""
        self.changed = time.time()
        if not self.title:
            asked = next((node.text for lane in self.lanes for node in lane.nodes if node.role == "user"), "")
            self.title = record.title_of(asked)

    def add_lane(self, engine: Engine) -> Lane:
        """Ask another model too, with the same messages so far."""
        kept = self.lanes[0].kept()
        lane = Lane(self, self._session, self._first, kept if kept.messages else None)
        lane.partner.go_on_with(engine)
        self.lanes.append(lane)
        return lane

    def record(self) -> record.Conversation:
        """Return it as it is kept."""
        return record.Conversation(
            id=self.id,
            title=self.title,
            created=self.created,
            changed=self.changed,
            host=self._session.host,
            system=self.options.system,
            sampling=dict(self.options.sampling),
            lanes=tuple(lane.kept() for lane in self.lanes),
        )

    def close(self) -> None:
        """End its answers; what came is kept."""
        for lane in self.lanes:
            lane.stop()
