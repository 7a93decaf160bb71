"""The routes: listed, made, removed, and taken back to where they led before."""

from collections.abc import Awaitable, Callable, Sequence

from engine_host.core.event_log import EventLog
from engine_host.gateway.directory import Directory
from engine_host.gateway.routing.book import RouteBook, check_route
from engine_host.gateway.routing.elsewhere import NO_OTHERS, OtherMachines
from engine_host.gateway.routing.provider import check_key_file
from engine_host.gateway.routing.seen import Seen
from engine_host.operations.performs import performs
from engine_host.operations.presets.catalog import PresetOperations
from engine_host.operations.routes.states import Known, refuse_unknown, status_of
from engine_host.protocol.endpoint.routes import (
    Provider,
    Route,
    RoutePage,
    RouteStatus,
    RouteTargets,
    SetRoute,
)
from engine_host.protocol.events import RoutesChangedEvent
from engine_host.protocol.models import ModelFile
from engine_host.protocol.operations import endpoint as endpoint_ops


class RouteOperations:
    """The routes in the database, and what became of their targets."""

    def __init__(
        self,
        book: RouteBook,
        directory: Directory,
        events: EventLog,
        presets: PresetOperations,
        list_models: Callable[[bool], Awaitable[Sequence[ModelFile]]],
        is_on_demand: Callable[[str], bool],
        seen: Callable[[Provider], Seen],
        others: OtherMachines = NO_OTHERS,
    ) -> None:
        """`is_on_demand` tells whether a request loads the model of a name.

        `seen` is what became of the last requests to a provider.
        """
        self._seen = seen
        self._others = others
        self._book = book
        self._directory = directory
        self._events = events
        self._presets = presets
        self._list_models = list_models
        self._is_on_demand = is_on_demand

    @performs(endpoint_ops.ROUTES)
    async def page(self) -> RoutePage:
        """Return all routes with the state of their targets."""
        routes = sorted(self._book.saved.values(), key=lambda route: route.id)
        await self._others.look(name for route in routes for name in route.targets.engines)
        known = await self._known()
        return RoutePage(seq=self._events.seq, routes=tuple(status_of(route, known) for route in routes))

    @performs(endpoint_ops.ROUTE)
    async def show(self, route_id: str) -> RouteStatus:
        """Return one route. Raises HostError(not_found)."""
        route = self._book.get(route_id)
        await self._others.look(route.targets.engines)
        return await self._status(route)

    @performs(endpoint_ops.SET_ROUTE)
    async def put(self, route_id: str, asked: SetRoute) -> RouteStatus:
        """Make a route or lead it elsewhere at once.

        Raises HostError: not_found for a name that nobody knows, unless `anyway` is said; setting_invalid for
        an id, an address or the file of a key; conflict for too many; and what saving raises.
        """
        await self._others.look(asked.engines)
        known = await self._known()
        old = self._book.saved.get(route_id)
        check_route(route_id, asked.targets)
        # What the route led to already is no new mistake, though it may be gone since.
        kept = old.targets if old is not None else None
        if not asked.anyway:
            engines = [name for name in asked.engines if kept is None or name not in kept.engines]
            refuse_unknown(route_id, engines, known)
        check_new_key_file(asked, kept)
        return await self._changed(self._book.put(route_id, asked.targets))

    @performs(endpoint_ops.REMOVE_ROUTE)
    async def remove(self, route_id: str) -> RoutePage:
        """Forget a route. Raises HostError(not_found)."""
        self._book.remove(route_id)
        self._events.publish(RoutesChangedEvent())
        return await self.page()

    @performs(endpoint_ops.ROUTE_BACK)
    async def back(self, route_id: str) -> RouteStatus:
        """Lead a route where it led before. Raises HostError(not_found), HostError(conflict)."""
        return await self._changed(self._book.back(route_id))

    async def _changed(self, route: Route) -> RouteStatus:
        self._events.publish(RoutesChangedEvent())
        return await self._status(route)

    async def _status(self, route: Route) -> RouteStatus:
        return status_of(route, await self._known())

    async def _known(self) -> Known:
        models = await self._list_models(False)
        startable = {name for model in models for name in (model.id, model.name)}
        catalog = await self._presets.catalog()
        startable |= {*catalog.presets, *catalog.variations}
        starting = self._directory.starting()
        return Known(
            self._directory.targets(), starting, startable, self._is_on_demand, self._seen, self._others
        )


def check_new_key_file(asked: RouteTargets, kept: RouteTargets | None) -> None:
    """Refuse the file of a key that a route did not name before. Raises HostError(setting_invalid)."""
    before = {one.provider.key_file for one in kept.providers} if kept is not None else set()
    for one in asked.providers:
        if one.provider.key_file not in before:
            check_key_file(one.provider)
