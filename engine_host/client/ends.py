"""Ends of engines by themselves, the newest first: as a host remembers them, and as is on record."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine_host.core.sizes import duration
from engine_host.protocol.bench.autopsy import AutopsyEntry, Ending
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.language import measured, tr

_GONE = (EngineState.UNLOADED, EngineState.FAILED)


@dataclass(frozen=True)
class End:
    """One end; `record` is the id of its record where that is all that is left of it.

    `refused` is a start that never had a process: the host remembers it while it runs, and nothing died.
    """

    at: float
    name: str
    engine: str
    sentence: str
    record: str = ""
    lives_again: bool = False
    refused: bool = False

    def age(self, now: float) -> str:
        """Return how long ago it was."""
        return age_words(self.at, now)


def age_words(at: float, now: float) -> str:
    """Return how long ago a time was; a clock that was set back makes nothing of the future."""
    return tr("{ago} ago", ago=measured(duration(max(0.0, now - at))))


def ended(engine: Engine) -> float:
    """Return when an engine ended, or was started where that is not known."""
    return engine.created_at if engine.ended_at is None else engine.ended_at


def what_it_did(engine: Engine) -> str:
    """Return how far an engine came that failed, as the end of a sentence about it."""
    if engine.ready_at is not None:
        return tr("died while it served")
    return tr("was refused its start") if engine.was_refused else tr("failed to start")


def failed(engines: Iterable[Engine]) -> list[Engine]:
    """Return the engines that failed, the one that ended last first."""
    return sorted((one for one in engines if one.state is EngineState.FAILED), key=ended, reverse=True)


def left_ended(engines: Iterable[Engine], now: float, refused_for: float) -> list[Engine]:
    """Return the engines that failed and were not started again, the one that ended last first.

    Of a start that was refused nothing ran and nothing is to be looked up, and whoever asked for it was told:
    it is news for so many seconds.
    """
    known = tuple(engines)
    return [
        one
        for one in failed(known)
        if started_again(one, known) is None and not (one.was_refused and now - ended(one) > refused_for)
    ]


def started_again(engine: Engine, engines: Iterable[Engine]) -> Engine | None:
    """Return the newest later start of the same name."""
    later = [one for one in engines if one.name == engine.name and one.created_at > engine.created_at]
    return max(later, key=lambda one: one.created_at, default=None)


def ends_of(engines: Sequence[Engine], records: Iterable[AutopsyEntry]) -> list[End]:
    """Return all ends, the newest first; of one that has a record and is remembered what is remembered."""
    found = []
    for engine in failed(engines):
        again = started_again(engine, engines)
        message = engine.problem.message if engine.problem is not None else tr("It ended.")
        lives = again is not None and again.state not in _GONE
        found.append(
            End(ended(engine), engine.name, engine.id, message, lives_again=lives, refused=engine.was_refused)
        )
    known = {engine.id for engine in engines}
    found += [
        End(one.at, one.name, one.engine, one.sentence, one.id)
        for one in records
        # Version 0.1 kept records of refused starts too.
        if one.engine not in known and one.ending is not Ending.REFUSED
    ]
    return sorted(found, key=lambda end: end.at, reverse=True)
