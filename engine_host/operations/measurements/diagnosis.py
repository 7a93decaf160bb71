"""Why engines are slow: what was measured while they worked, judged."""

import shlex
import time
from collections.abc import Awaitable, Callable, Sequence

from engine_host.core.diagnosis.slow_causes import causes_of
from engine_host.core.diagnosis.slow_ceilings import beyond, reached
from engine_host.core.diagnosis.work import Ceiling, Measured, busy_of
from engine_host.core.event_log import EventLog
from engine_host.gateway.inspection.prefix_lens import PrefixLens
from engine_host.operations.performs import performs
from engine_host.protocol.bench.diagnosis import Diagnosis, DiagnosisQuery, SlowCause
from engine_host.protocol.engines import Engine
from engine_host.protocol.errors import Fix
from engine_host.protocol.language import tr
from engine_host.protocol.operations import table as ops
from engine_host.protocol.telemetry import TelemetryPage
from engine_host.telemetry.gpus import Gpus
from engine_host.telemetry.history import History

CeilingOf = Callable[[Engine], Awaitable[Ceiling | None]]
"""Returns what the hardware allows an engine; None where that cannot be computed."""
_TURNS = 200
_BANDWIDTH = "the bandwidth of its memory"
_PARTS = {"kv.share": "the KV cache", "prefix_hits": "prefix hits", "requests.running": "requests"}


class DiagnosisOperations:
    """Judges what the history of series holds."""

    def __init__(
        self,
        alive: Callable[[], Sequence[Engine]],
        find_engine: Callable[[str], Engine],
        history: History,
        prefixes: PrefixLens,
        gpus: Gpus,
        events: EventLog,
        ceiling_of: CeilingOf,
    ) -> None:
        """`find_engine` finds by id or public name, and raises HostError(not_found)."""
        self._alive = alive
        self._find_engine = find_engine
        self._history = history
        self._prefixes = prefixes
        self._gpus = gpus
        self._events = events
        self._ceiling_of = ceiling_of

    @performs(ops.DIAGNOSE)
    async def diagnose(self, asked: DiagnosisQuery) -> Diagnosis:
        """Return the causes of the last minutes. Raises HostError(not_found)."""
        now = time.time()
        since = now - asked.minutes * 60
        engines = [self._find_engine(asked.engine)] if asked.engine is not None else self._alive()
        page = await self._history.page((), since)
        reading = self._gpus.last
        ceilings = {one.id: known for one in engines if (known := await self._ceiling_of(one)) is not None}
        measured = Measured(_on_one_grid(page), page.step, reading.gpus, self._lost(since), ceilings)
        found: list[SlowCause] = []
        worked: dict[str, float] = {}
        too_little: list[str] = []
        for engine in engines:
            busy = busy_of(engine, measured)
            worked[engine.name] = len(busy.steps) * page.step
            if not busy.enough:
                too_little += [engine.name] if busy.steps else []
                continue
            # What is about the machine is said once, however many engines it slowed down.
            said = {(cause.reason, cause.evidence.get("gpu")) for cause in found if cause.engine is None}
            found += [
                cause
                for cause in causes_of(busy, measured)
                if cause.engine is not None or (cause.reason, cause.evidence.get("gpu")) not in said
            ]
        return Diagnosis(
            seq=self._events.seq,
            seconds=asked.minutes * 60,
            busy=worked,
            causes=tuple(sorted(found, key=_gravity)),
            since_ready={
                one.name: now - one.ready_at
                for one in engines
                if one.ready_at is not None and one.ready_at > since and one.ended_at is None
            },
            too_little=tuple(too_little),
            not_measured=tuple(_not_measured(engines, measured)),
            instead=_instead(engines, measured),
            no_gpu=reading.no_gpu,
        )

    def _lost(self, since: float) -> dict[str, float]:
        lost: dict[str, float] = {}
        for conversation in self._prefixes.conversations(_TURNS):
            for turn in conversation.turns:
                if turn.at >= since and turn.lost_seconds:
                    lost[turn.engine] = lost.get(turn.engine, 0.0) + turn.lost_seconds
        return lost


def _gravity(cause: SlowCause) -> float:
    """Sort causes, the gravest first; last those whose cost was not measured."""
    return 1.0 if cause.share is None else -cause.share


def _on_one_grid(page: TelemetryPage) -> dict[str, tuple[float | None, ...]]:
    """Return the values of each series from the first step of any; before its own first there are gaps."""
    first = min((series.at[0] for series in page.series), default=0.0)
    return {
        series.name: (None,) * round((series.at[0] - first) / page.step) + series.values
        for series in page.series
    }


def _not_measured(engines: Sequence[Engine], measured: Measured) -> Sequence[str]:
    missing: list[str] = []
    for engine in engines:
        parts = [
            words
            for name, words in _PARTS.items()
            if not measured.values(f"engine.{engine.id}.{name}") and not _is_counted(engine, name)
        ]
        if not _ceiling_known(engine, measured):
            parts.append(_BANDWIDTH)
        if parts:
            missing.append(f"{engine.name}: {', '.join(parts)}")
    return missing


def _instead(engines: Sequence[Engine], measured: Measured) -> Fix | None:
    """Return what measures an engine whose limit is not known; None where each is known."""
    unknown = next((one for one in engines if not _ceiling_known(one, measured)), None)
    if unknown is None:
        return None
    return Fix(
        text=tr(
            "Nothing here measures that bandwidth, so how near {name} is to its limit cannot be told; what "
            "it reaches is measured by a benchmark.",
            name=unknown.name,
        ),
        command=f"sndr bench run quick --engine {shlex.quote(unknown.name)}",
    )


def _ceiling_known(engine: Engine, measured: Measured) -> bool:
    """Tell whether it can be said how near an engine is to what its hardware allows."""
    ceiling = measured.ceilings.get(engine.id)
    known = ceiling is not None and ceiling(1, None, None).decode is not None
    return known and not beyond(reached(busy_of(engine, measured), measured))


def _is_counted(engine: Engine, name: str) -> bool:
    """Tell whether an engine counts something of which there is no share yet, as nothing was looked up."""
    return (
        name == "prefix_hits"
        and engine.readings is not None
        and engine.readings.prefix_queries_total is not None
    )
