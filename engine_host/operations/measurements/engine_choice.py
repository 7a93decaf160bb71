"""The engine that a measurement is of."""

from collections.abc import Sequence

from engine_host.core.did_you_mean import meant_or
from engine_host.core.errors import HostError
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr

READY = {EngineState.READY, EngineState.BUSY}


def ready_engine(engines: Sequence[Engine], wanted: str | None) -> Engine:
    """Return the engine that is named, or the only one that can answer now.

    Raises HostError: not_found, no_engine_runs, engine_not_ready, conflict where several could be meant.
    """
    alive = [one for one in engines if wanted is None or wanted in (one.id, one.name)]
    ready = [one for one in alive if one.state in READY]
    if wanted is None and len(ready) > 1:
        raise HostError(
            Reason.CONFLICT,
            tr("Several engines run: {ready}.", ready=", ".join(one.name for one in ready)),
            cause="What is measured is one engine, and none was named.",
            fix="Name the one that is meant.",
            evidence={"engines": [one.id for one in ready]},
        )
    if ready:
        return ready[0]
    if alive:
        raise HostError(
            Reason.ENGINE_NOT_READY,
            tr("{alive} is {state}, and cannot be measured now.", alive=alive[0].name, state=alive[0].state),
            cause="It loads or ends, and answers no request now.",
            fix=Fix(text="See when it is ready.", command="sndr status"),
            evidence={"engine": alive[0].id},
        )
    others = [one.name for one in engines if one.state in READY]
    if wanted is not None and others:
        raise HostError(
            Reason.NOT_FOUND,
            tr("No engine {wanted} runs.", wanted=wanted),
            cause=tr("These run: {names}.", names=", ".join(others[:8])),
            fix=meant_or(Fix(text="Name the one that is meant.", command="sndr status"), wanted, others),
        )
    raise HostError(
        Reason.NO_ENGINE_RUNS if wanted is None else Reason.NOT_FOUND,
        "No engine runs, so there is nothing to measure."
        if wanted is None
        else tr("No engine {wanted} runs.", wanted=wanted),
        fix=Fix(text="Start one first.", command="sndr run --demo --detach"),
    )
