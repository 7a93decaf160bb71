"""The questions of ssh, one at a time, and the answers of the person at the window."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.errors import Reason
from engine_host.protocol.operations import remote_hosts as ops
from engine_host.protocol.remote.hosts import AnswerSshQuestion, SshQuestion
from sndr_gui.host.session import Session


class QuestionsModel(QObject):
    """Holds the oldest question that waits; an answer goes to ssh and is kept nowhere.

    Signals:
        changed: another question waits, or none
    """

    changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._answered: set[str] = set()
        self._shown = ""
        session.state.asked.connect(self._on_asked)

    @property
    def question(self) -> SshQuestion | None:
        """The question to ask now."""
        waiting = [one for one in self._session.state.questions.values() if one.id not in self._answered]
        return min(waiting, key=lambda one: (one.asked_at, one.id), default=None)

    def answer(self, question: SshQuestion, accept: bool, text: str = "") -> None:
        """Tell ssh what the person said; a question that is closed meanwhile needs no answer."""
        self._answered.add(question.id)

        async def work(client: AsyncControlClient) -> None:
            said = AnswerSshQuestion(accept=accept, answer=text)
            await client.call(ops.ANSWER_SSH, said, id=question.id)

        def failed(error: HostError) -> None:
            if error.reason is not Reason.NOT_FOUND:
                self._session.notices.problem("ssh question", error.problem)

        self._session.command("ssh question", work, failed=failed)
        self._on_asked()

    def _on_asked(self) -> None:
        self._answered &= set(self._session.state.questions)
        question = self.question
        shown = question.id if question is not None else ""
        if shown != self._shown:
            self._shown = shown
            self.changed.emit()
