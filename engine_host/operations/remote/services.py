"""All operations on remote hosts together, for whoever builds the host."""

from collections.abc import Mapping

from engine_host.core.event_log import EventLog
from engine_host.core.jobs import JobRunner
from engine_host.core.paths import Folders
from engine_host.operations.deploy import DeployOperations
from engine_host.operations.models import ModelOperations
from engine_host.operations.remote.hosts import RemoteHostOperations
from engine_host.operations.remote.install import RemoteInstallOperations
from engine_host.operations.remote.power import PowerOperations
from engine_host.operations.remote.rehydration import Rehydration
from engine_host.operations.remote.sheet import HostSheetOperations
from engine_host.operations.remote.telemetry import HostTelemetryOperations
from engine_host.operations.remote.transfers import ModelTransferOperations
from engine_host.operations.remote.units import Machines, ServiceOperations
from engine_host.remote.hosts import RemoteHosts


def remote_services(
    hosts: RemoteHosts,
    events: EventLog,
    jobs: JobRunner,
    folders: Folders,
    environment: Mapping[str, str],
    models: ModelOperations,
    deploy: DeployOperations,
) -> tuple[object, ...]:
    """Return them; `environment` is where the ssh configuration is named, if it is not the user's own."""
    machines = Machines(hosts, environment)
    transfers = ModelTransferOperations(hosts, jobs, models)
    Rehydration(hosts, jobs, transfers)
    return (
        RemoteHostOperations(hosts, events, environment),
        HostSheetOperations(hosts),
        RemoteInstallOperations(hosts, jobs, folders),
        transfers,
        HostTelemetryOperations(hosts, events),
        ServiceOperations(machines, jobs, deploy),
        PowerOperations(machines, jobs),
    )
