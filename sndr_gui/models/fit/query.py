"""One query to the memory calculator: sent while it is still being changed, the newest answer wins."""

from __future__ import annotations

import asyncio

from PySide6.QtCore import QObject, Signal

from engine_host.client import HostError
from engine_host.protocol.errors import Problem
from engine_host.protocol.launch.fit import FitReport, FitRequest
from engine_host.protocol.operations import table as ops
from sndr_gui.host.session import Session
from sndr_gui.models.window.throttle import Throttle

# A slider that is moved asks some thirty times a second at most; the calculator takes some milliseconds.
_DEBOUNCE_MS = 30
# What makes it another question, to which the last answer says nothing.
_SUBJECT = {"model", "preset", "engine", "server", "hardware", "gpus", "cpu", "bits"}


class FitQuery(QObject):
    """Holds a FitRequest and the newest answer.

    While an answer is under way the next question waits, so that a moving slider moves the bar with it, and
    answers come in the order of their questions. `answered` is the request that `report` is the answer to.

    Signals:
        changed: the request, the answer, its problem, or whether one is waited for, is new
    """

    changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self.request: FitRequest | None = None
        self.answered: FitRequest | None = None
        self.report: FitReport | None = None
        self.problem: Problem | None = None
        self.sentence = ""
        self._task: asyncio.Future[None] | None = None
        self._asked: FitRequest | None = None
        self._throttle = Throttle(self, _DEBOUNCE_MS, self._send)
        session.connection.changed.connect(self._on_link)

    @property
    def waiting(self) -> bool:
        """True while the newest answer is not the one to the request."""
        failed = self.problem is not None or bool(self.sentence)
        return self.request is not None and self.answered != self.request and not failed

    def ask(self, request: FitRequest) -> None:
        """Send the request soon, unless it is the same; one that failed is sent again by `refresh`.

        Of questions that come faster than their answers only the newest is sent.
        """
        if request == self.request:
            return
        if self.request is None or _subject(request) != _subject(self.request):
            self._forget()
        self.request = request
        self.problem, self.sentence = None, ""
        self._throttle.trigger()
        self.changed.emit()

    def refresh(self) -> None:
        """Send the same request again: the machine, the model's files or a preset may have changed."""
        if self.request is not None:
            self.answered = None
            self.problem, self.sentence = None, ""
            self._drop()
            self._throttle.trigger()
            self.changed.emit()

    def clear(self) -> None:
        """Forget the request and its answer."""
        self._forget()
        self.request = None
        self.problem, self.sentence = None, ""
        self.changed.emit()

    def _forget(self) -> None:
        self._drop()
        self.report = self.answered = None

    def _drop(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._task = self._asked = None

    def _on_link(self) -> None:
        if self._session.connection.connected and self.request is not None and self.answered != self.request:
            self.refresh()

    def _send(self) -> None:
        request = self.request
        if request is None or self._task is not None or self.answered == request:
            return
        self._asked = request
        self._task = self._session.tasks.start(self._answer(request), "fit")

    async def _answer(self, request: FitRequest) -> None:
        report: FitReport | None = None
        problem: Problem | None = None
        sentence = ""
        try:
            report = await self._session.client.call(ops.FIT, request)
        except HostError as error:
            if error.lost:
                sentence = str(error)
            else:
                problem, sentence = error.problem, error.problem.sentence()
        if self._asked is not request:
            return
        self._task = self._asked = None
        if report is not None:
            self.report, self.answered = report, request
        elif request == self.request:
            # A bar of another question must not stand beside a refusal.
            self.report = self.answered = None
            self.problem, self.sentence = problem, sentence
        if request != self.request:
            self._throttle.trigger()
        self.changed.emit()


def _subject(request: FitRequest) -> dict[str, object]:
    return request.model_dump(include=_SUBJECT)
