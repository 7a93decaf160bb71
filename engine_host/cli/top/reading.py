"""One moment of a host: its machine, GPUs, engines and open requests."""

import time
from collections.abc import Iterator

from engine_host.client.ends import ended, left_ended
from engine_host.client.sync import ControlClient
from engine_host.protocol.base import Seconds, Wire
from engine_host.protocol.endpoint.requests import RequestQuery
from engine_host.protocol.engines import Engine, EngineState, Request, RequestState
from engine_host.protocol.host import HostInfo
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations import table as ops
from engine_host.protocol.telemetry import TelemetryQuery

_OF_THE_MACHINE = ("cpu.share", "disk.read", "disk.written", "network.received", "network.sent")
_LOOK_BACK = 10.0
_SHOWN_ENDED = 600.0
_SHOWN_REFUSED = 60.0
_ENDED = {RequestState.DONE, RequestState.FAILED, RequestState.CANCELLED}
_GONE = {EngineState.UNLOADED, EngineState.FAILED}


class Reading(Wire):
    """One moment; series of the machine by name, engines with a process, requests that are open."""

    at: Seconds
    host: HostInfo
    machine: dict[str, float | None]
    engines: tuple[Engine, ...]
    requests: tuple[Request, ...]
    ended: tuple[Engine, ...] = ()
    """Those that ended by themselves a while ago and were not started again."""


def readings(client: ControlClient, interval: float) -> Iterator[Reading]:
    """Yield what the host knows now, at once and then after each interval."""
    due = time.monotonic()
    while True:
        since = time.time() - _LOOK_BACK
        host = client.call(ops.HOST)
        series = client.call(ops.TELEMETRY, TelemetryQuery(names=_OF_THE_MACHINE, since=since)).series
        engines = client.call(ops.ENGINES).engines
        requests = client.call(endpoint_ops.REQUESTS, RequestQuery()).requests
        at = time.time()
        yield Reading(
            at=at,
            host=host,
            machine={one.name: _newest(one.values) for one in series},
            engines=tuple(one for one in engines if one.state not in _GONE),
            requests=tuple(one for one in requests if one.state not in _ENDED),
            ended=tuple(
                one for one in left_ended(engines, at, _SHOWN_REFUSED) if at - ended(one) < _SHOWN_ENDED
            ),
        )
        now = time.monotonic()
        due = max(due + interval, now)
        time.sleep(due - now)


def _newest(values: tuple[float | None, ...]) -> float | None:
    return next((value for value in reversed(values) if value is not None), None)
