"""The measured series of agentless hosts."""

from engine_host.core.event_log import EventLog
from engine_host.operations.performs import performs
from engine_host.protocol.operations import remote_transfers as ops
from engine_host.protocol.telemetry import TelemetryPage, TelemetryQuery
from engine_host.remote.facts.series import STEP
from engine_host.remote.hosts import RemoteHosts


class HostTelemetryOperations:
    """Series of other machines, measured while they were connected."""

    def __init__(self, hosts: RemoteHosts, events: EventLog) -> None:
        self._hosts = hosts
        self._events = events

    @performs(ops.HOST_TELEMETRY)
    async def series(self, name: str, asked: TelemetryQuery) -> TelemetryPage:
        """Return the series of a host; none of one that is not agentless. Raises HostError(not_found)."""
        step = max(asked.step or STEP, STEP)
        history = self._hosts.history(name)
        return await history.page(asked.names, asked.since, step, seq=self._events.seq)
