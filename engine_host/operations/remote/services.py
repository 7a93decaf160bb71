"""All operations on remote hosts together, for whoever builds the host."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from engine_host.core.event_log import EventLog
from engine_host.core.jobs import JobRunner
from engine_host.core.paths import Folders
from engine_host.operations.models import ModelOperations
from engine_host.operations.performs import Later
from engine_host.operations.remote.hosts import RemoteHostOperations
from engine_host.operations.remote.rehydration import Rehydration
from engine_host.operations.remote.sheet import HostSheetOperations
from engine_host.operations.remote.telemetry import HostTelemetryOperations
from engine_host.operations.remote.transfers import ModelTransferOperations
from engine_host.protocol.operations import remote_install, services
from engine_host.remote.hosts import RemoteHosts

if TYPE_CHECKING:
    from engine_host.operations.deploy import DeployOperations
    from engine_host.operations.remote.install import RemoteInstallOperations
    from engine_host.operations.remote.power import PowerOperations
    from engine_host.operations.remote.units import ServiceOperations

_POWER = (services.POWER, services.PLAN_POWER, services.SET_POWER)


def remote_services(
    hosts: RemoteHosts,
    events: EventLog,
    jobs: JobRunner,
    folders: Folders,
    environment: Mapping[str, str],
    models: ModelOperations,
    deploy: "Callable[[], DeployOperations]",
) -> tuple[object, ...]:
    """Return them; `environment` is where the ssh configuration is named, if it is not the user's own."""

    def install() -> "RemoteInstallOperations":
        from engine_host.operations.remote.install import RemoteInstallOperations

        return RemoteInstallOperations(hosts, jobs, folders)

    def units() -> "ServiceOperations":
        from engine_host.operations.remote.units import Machines, ServiceOperations

        return ServiceOperations(Machines(hosts, environment), jobs, deploy())

    def power() -> "PowerOperations":
        from engine_host.operations.remote.power import PowerOperations
        from engine_host.operations.remote.units import Machines

        return PowerOperations(Machines(hosts, environment), jobs)

    transfers = ModelTransferOperations(hosts, jobs, models)
    Rehydration(hosts, jobs, transfers)
    return (
        RemoteHostOperations(hosts, events, environment),
        HostSheetOperations(hosts),
        Later(remote_install.OPERATIONS, install),
        transfers,
        HostTelemetryOperations(hosts, events),
        Later((one for one in services.OPERATIONS if one not in _POWER), units),
        Later(_POWER, power),
    )
