"""All operations of staging together, for whoever builds the host."""

from engine_host.core.event_log import EventLog
from engine_host.core.jobs import JobRunner
from engine_host.core.store import Store
from engine_host.gateway.app import Gateway
from engine_host.gateway.routing.book import RouteBook
from engine_host.operations.routes.cutover import CutOverOperations
from engine_host.operations.staging.places import Here, Places
from engine_host.operations.staging.promote import PromotionOperations
from engine_host.operations.staging.promoted import PromotionBook
from engine_host.operations.staging.rollback import RollbackOperations
from engine_host.operations.staging.stage import StageOperations
from engine_host.protocol.events import RoutesChangedEvent
from engine_host.remote.hosts import RemoteHosts


def staging_services(
    hosts: RemoteHosts,
    here: Here,
    routes: RouteBook,
    gateway: Gateway,
    jobs: JobRunner,
    store: Store,
    events: EventLog,
) -> tuple[object, ...]:
    """Return them, with the cut-over that they stand on; `here` are the engines of this machine."""

    def changed() -> None:
        events.publish(RoutesChangedEvent())

    cutovers = CutOverOperations(routes, gateway, jobs, changed)
    places, promoted = Places(here, hosts), PromotionBook(store)
    return (
        cutovers,
        StageOperations(hosts, routes, jobs),
        PromotionOperations(places, routes, cutovers, jobs, promoted, events),
        RollbackOperations(places, routes, jobs, promoted, changed),
    )
