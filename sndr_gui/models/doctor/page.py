"""The view-model of the doctor: why engines were slow, and why the last start failed."""

from __future__ import annotations

import shlex
import time

from PySide6.QtCore import QObject, Signal

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.client.ends import End, ends_of
from engine_host.protocol.bench.autopsy import AutopsyEntry
from engine_host.protocol.bench.diagnosis import TOO_LITTLE, Diagnosis, DiagnosisQuery
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.errors import Problem
from engine_host.protocol.language import tr, translated
from engine_host.protocol.operations import table as ops
from sndr_gui.host.choice import LIVE_STATES, STARTING_STATES
from sndr_gui.host.session import Session
from sndr_gui.kit import formats
from sndr_gui.models.doctor.words import span_words
from sndr_gui.models.engine.choice import state_word

_MINUTES = 10.0
MOST_ENDS = 5
"""Earlier ends that are shown."""


class DoctorModel(QObject):
    """The model of the doctor.

    Signals:
        changed: what was found, the engines or a problem are new
    """

    changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.found: Diagnosis | None = None
        self._records: tuple[AutopsyEntry, ...] = ()
        self.looked_at = ""
        self.problem: Problem | None = None
        self.minutes = _MINUTES
        self._chosen = ""
        self._shown = self._reading = self._again = False
        self._live: tuple[str, ...] = ()
        session.state.engines_changed.connect(self._on_engines)
        session.connection.changed.connect(self._on_link)

    @property
    def connected(self) -> bool:
        """True while the host answers."""
        return self.session.connection.connected

    @property
    def subtitle(self) -> str:
        """The line below the title."""
        if not self.connected:
            return tr("no connection")
        return tr("looked at {looked_at}", looked_at=self.looked_at) if self.looked_at else ""

    @property
    def reading(self) -> bool:
        """True while an answer is awaited."""
        return self._reading

    @property
    def chosen(self) -> Engine | None:
        """The engine that is asked about; None for all that run."""
        return self.session.state.engines.get(self._chosen)

    @property
    def choices(self) -> tuple[tuple[str, str], ...]:
        """The engines that can be asked about, each with its id: all that run, and each that has answered."""
        answered = [one for one in self.session.state.engines.values() if one.ready_at is not None]
        answered.sort(key=lambda one: -one.created_at)
        return ((tr("all that run"), ""), *((_title(one), one.id) for one in answered))

    @property
    def knows_nothing(self) -> bool:
        """True where no engine runs, none failed, none has answered, and no end is on record."""
        return not self.session.state.engines and not self._records

    @property
    def failed(self) -> Engine | None:
        """The engine that failed last, whenever it was started."""
        dead = (one for one in self.session.state.engines.values() if one.state is EngineState.FAILED)
        return max(dead, key=lambda one: one.ended_at or one.created_at, default=None)

    @property
    def earlier(self) -> tuple[End, ...]:
        """The ends beside the last failure, the newest first: of earlier hosts too, as they are on record."""
        failed = self.failed
        ends = ends_of(tuple(self.session.state.engines.values()), self._records)
        earlier = (end for end in ends if not end.refused and (failed is None or end.engine != failed.id))
        return tuple(earlier)[:MOST_ENDS]

    def record_of(self, engine_id: str) -> str:
        """Return the id of the newest record of an engine; empty where there is none."""
        return next((one.id for one in self._records if one.engine == engine_id), "")

    @property
    def starting(self) -> tuple[Engine, ...]:
        """The engines that start and have not failed."""
        return tuple(one for one in self.session.state.live if one.state in STARTING_STATES)

    def later(self, failed: Engine) -> Engine | None:
        """Return the engine of the same name that was started after one that failed, and lives."""
        found = self.session.state.live_named(failed.name)
        return found if found is not None and found.created_at > failed.created_at else None

    def busy_words(self) -> tuple[str, ...]:
        """Return how long each engine worked in the time looked at."""
        found = self.found
        if found is None:
            return ()
        span = span_words(found.seconds / 60)
        if not found.busy:
            return (tr("No engine runs, so none is slow."),)
        said = []
        for name, seconds in found.busy.items():
            ready = found.since_ready.get(name)
            of = span if ready is None else tr("the {time} since it was ready", time=formats.duration(ready))
            busy = formats.duration(seconds)
            said.append(
                tr("{name} worked for at most {duration} of {span}.", name=name, duration=busy, span=of)
                if seconds
                else tr("{name} did not work in {span}.", name=name, span=of)
            )
        return tuple(said)

    def verdict(self) -> str:
        """Return the sentence that stands where no cause was found."""
        if self.found is None or self.found.causes or not self.found.busy:
            return ""
        if not any(self.found.busy.values()):
            return tr("Ask something, and look again.")
        short = self.found.too_little
        judged = [name for name, seconds in self.found.busy.items() if seconds and name not in short]
        return tr("Nothing that was measured slowed it down.") if judged else translated(TOO_LITTLE)

    @property
    def command(self) -> str:
        """The command that says the same."""
        words = ["sndr", "doctor"]
        if (engine := self.chosen) is not None:
            # A name is that of an engine that runs; one that ended is told by its id.
            runs = self.session.state.live_named(engine.name) is engine
            words.append(engine.name if runs else engine.id)
        if self.minutes != _MINUTES:
            words += ["--minutes", f"{self.minutes:g}"]
        return shlex.join(words)

    def set_shown(self, shown: bool) -> None:
        """Look while somebody looks."""
        self._shown = shown
        if shown:
            self.read()

    def choose(self, engine_id: str) -> None:
        """Ask about one engine, or with an empty id about all that run."""
        if engine_id != self._chosen:
            self._chosen = engine_id
            self.read()
            self.changed.emit()

    def set_minutes(self, minutes: float) -> None:
        """Look back as far as this."""
        if minutes != self.minutes:
            self.minutes = minutes
            self.read()
            self.changed.emit()

    def read(self) -> None:
        """Look again, while the page is shown; what was asked meanwhile is asked after it."""
        if not self._shown or not self.connected:
            return
        if self._reading:
            self._again = True
            return
        self._reading, self._again = True, False
        asked = DiagnosisQuery(engine=self._chosen or None, minutes=self.minutes)

        async def work(client: AsyncControlClient) -> None:
            found = await client.call(ops.DIAGNOSE, asked)
            page = await client.call(ops.AUTOPSIES)
            self.found, self._records = found, page.autopsies
            self.looked_at = time.strftime("%H:%M:%S")
            self.problem = None

        def failed(error: HostError) -> None:
            self.problem = None if error.lost else error.problem

        def done() -> None:
            self._reading = False
            if self._again:
                self.read()
            self.changed.emit()

        self.session.command("ask the doctor", work, done=done, failed=failed)
        self.changed.emit()

    def _on_engines(self) -> None:
        engines = self.session.state.engines
        if self._chosen and self._chosen not in engines:
            self._chosen = ""
        live = tuple(engine.id for engine in engines.values() if engine.state in LIVE_STATES)
        if live != self._live:
            self._live = live
            self.read()
        self.changed.emit()

    def _on_link(self) -> None:
        self.read()
        self.changed.emit()


def _title(engine: Engine) -> str:
    at = time.strftime("%H:%M:%S", time.localtime(engine.created_at))
    return "  ·  ".join((formats.shortened(engine.name), at, state_word(engine)))
