"""The part of telemetry that the endpoint's `/metrics` shows: the newest sample, and who it is of."""

import socket
from collections.abc import Mapping

from engine_host.gateway.metrics.measured import Measured
from engine_host.operations.patches.of_engines import EnginePatchTracker
from engine_host.protocol.engines import Readings
from engine_host.remote.hosts import RemoteHosts
from engine_host.telemetry.gpus import Gpus
from engine_host.telemetry.playback import TracePlayer
from engine_host.telemetry.sampler import Sampler


def measured_now(
    sampler: Sampler,
    gpus: Gpus,
    player: TracePlayer,
    readings: Mapping[str, Readings],
    patches: EnginePatchTracker,
    remote: RemoteHosts,
) -> Measured:
    """Return it without asking a driver, an engine or another machine."""
    reading, played = gpus.last, player.shown
    return Measured(
        host=socket.gethostname(),
        sample=sampler.latest,
        gpus=reading.gpus,
        # Before the first sample nobody has looked.
        absence=reading.absence if sampler.latest is not None else None,
        recorded=played.gpus if played is not None else (),
        readings=readings,
        patches=patches.of_running(),
        remote=remote.figures(),
    )
