"""A request to another machine: its plan first, made anew while it is typed, then a job."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import ValidationError
from PySide6.QtCore import QObject, QTimer, Signal

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.base import Severity
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.jobs import Job
from engine_host.protocol.language import tr
from engine_host.protocol.launch.consents import ConsentNeeded
from engine_host.protocol.launch.plans import Finding
from engine_host.protocol.remote.install import PlannedChange, RemoteChange
from sndr_gui.host.session import Session
from sndr_gui.kit import formats

_SIGNS = {
    RemoteChange.ADD: "+",
    RemoteChange.CHANGE: "@",
    RemoteChange.REMOVE: "-",
    RemoteChange.KEEP: " ",
    RemoteChange.RUN: "$",
}
_PAUSE_MS = 400
"""What somebody types is asked for once they pause."""


def diff_of(changes: Iterable[PlannedChange]) -> str:
    """Return changes as a diff of that machine; a dollar sign stands before what is run there."""
    lines = []
    for one in changes:
        notes = [formats.size(one.size)] if one.size is not None else []
        notes += [one.note] if one.note else []
        lines.append(f"{_SIGNS[one.kind]} {one.what}" + (f"  ({', '.join(notes)})" if notes else ""))
        lines += [f"{_SIGNS[one.kind]}   {line}" for line in one.text.splitlines()]
    return "\n".join(lines)


@dataclass(frozen=True)
class Planned:
    """A plan as it is shown; an error in the findings stops it."""

    diff: str
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class AskedField:
    """One thing to be said; a `check` is yes or no, `choices` are offered, and alone where it is `closed`.

    What is `more` is shown when somebody asks for it.
    """

    id: str
    caption: str
    hint: str = ""
    value: str = ""
    choices: tuple[str, ...] = ()
    closed: bool = False
    check: bool = False
    required: bool = False
    more: bool = False


Values = Mapping[str, str]


class PlannedAction(ABC):
    """One kind of request to another machine; a check that is set has the value `yes`.

    Where a file from somebody else asks for more than harmless settings, the value `consent` is the digest of
    what a person consented to.
    """

    title: str
    about: str
    verb: str
    danger: bool = False
    fields: tuple[AskedField, ...] = ()

    @abstractmethod
    def command(self, values: Values) -> str:
        """Return the command that does the same."""

    @abstractmethod
    async def plan(self, client: AsyncControlClient, values: Values) -> Planned:
        """Return the plan; nothing changes. Raises HostError, ValidationError."""

    @abstractmethod
    async def start(self, client: AsyncControlClient, values: Values) -> Job:
        """Begin the job. Raises HostError, ValidationError."""


class PlannedJob(QObject):
    """One such request while it is made: its values, its plan, and its start.

    Signals:
        changed: the plan or a problem is new
        started: the job has begun
    """

    changed = Signal()
    started = Signal()

    def __init__(self, session: Session, name: str, action: PlannedAction) -> None:
        super().__init__()
        self.session, self.name, self.action = session, name, action
        self.values = {field.id: field.value for field in action.fields}
        self.plan: Planned | None = None
        self.problem: Problem | None = None
        self.wrong = ""
        self.reading = self.starting = False
        self._number = 0
        self._pause = QTimer(self)
        self._pause.setSingleShot(True)
        self._pause.setInterval(_PAUSE_MS)
        self._pause.timeout.connect(self.read)

    @property
    def command(self) -> str:
        """The command that does the same."""
        return self.action.command(self.values)

    @property
    def complete(self) -> bool:
        """True where everything is said that has to be."""
        return all(self.values[field.id].strip() for field in self.action.fields if field.required)

    @property
    def needed(self) -> ConsentNeeded | None:
        """The demands that somebody has to consent to before there is a plan."""
        if self.problem is None or self.problem.reason is not Reason.CONSENT_NEEDED:
            return None
        try:
            return ConsentNeeded.model_validate(self.problem.evidence)
        except ValidationError:
            return None

    @property
    def possible(self) -> bool:
        """True where a plan is there and nothing in it stops the job."""
        if self.plan is None or self.reading or self.starting:
            return False
        return not any(one.severity is Severity.ERROR for one in self.plan.findings)

    def set_value(self, field: str, value: str) -> None:
        """Say something else; the plan is made anew in a moment."""
        if self.values[field] == value:
            return
        self.values[field] = value
        self._number += 1
        self.plan = self.problem = None
        self.wrong = ""
        self._pause.start()
        self.changed.emit()

    def consent(self, digest: str) -> None:
        """Consent to what a file asks for, for these very contents, and make the plan."""
        self.values["consent"] = digest
        self.read()

    def read(self) -> None:
        """Make the plan; nothing changes over there."""
        self._pause.stop()
        if not self.complete:
            return
        self._number += 1
        number, values = self._number, dict(self.values)
        self.plan = self.problem = None
        self.reading = True

        async def work(client: AsyncControlClient) -> None:
            try:
                plan = await self.action.plan(client, values)
            except ValidationError as error:
                self._refuse(error)
                return
            if number == self._number:
                self.plan = plan

        def failed(error: HostError) -> None:
            if number == self._number:
                self.problem = error.problem

        def done() -> None:
            self.reading = False
            self.changed.emit()

        self.session.command(f"plan {self.action.title} {number}", work, done=done, failed=failed)
        self.changed.emit()

    def start(self) -> None:
        """Begin the job; `started` follows, or a problem."""
        if not self.possible:
            return
        self.starting = True
        values = dict(self.values)

        async def work(client: AsyncControlClient) -> None:
            await self.session.state.take(self.action.start(client, values))
            self.started.emit()

        def failed(error: HostError) -> None:
            self.problem = error.problem

        def done() -> None:
            self.starting = False
            self.changed.emit()

        self.session.command(self.action.title, work, done=done, failed=failed)
        self.changed.emit()

    def _refuse(self, error: ValidationError) -> None:
        first = error.errors(include_url=False, include_input=False)[0]
        captions = {field.id: field.caption for field in self.action.fields}
        where = captions.get(str(first["loc"][0]) if first["loc"] else "", tr("It"))
        self.wrong = f"{where}: {str(first['msg']).removeprefix('Value error, ')}."
