"""The routes as they are kept: in the host's database, and at hand for every request."""

import logging
import time
from collections.abc import Mapping

from pydantic import ValidationError

from engine_host.core.did_you_mean import meant_or
from engine_host.core.errors import HostError
from engine_host.core.outside.model_ids import check_id
from engine_host.core.store import Store
from engine_host.gateway.routing.provider import address_of
from engine_host.protocol.endpoint.routes import Route, RouteTargets
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr

_log = logging.getLogger(__name__)
_KIND = "route"
MOST = 200


class RouteBook:
    """All routes by id; every change is saved before it holds."""

    def __init__(self, store: Store) -> None:
        """Read what was saved; what is no route of this version is left out, and said in the log."""
        self._store = store
        self._routes: dict[str, Route] = {}
        self._tried: dict[str, Route] = {}
        for body in store.newest(_KIND, MOST):
            try:
                route = Route.model_validate_json(body)
                check_route(route.id, route.targets)
            except (ValidationError, HostError) as error:
                _log.warning("a route of another version of this program is left out: %s", error)
                continue
            self._routes[route.id] = route

    @property
    def saved(self) -> Mapping[str, Route]:
        """The routes that a person made, by id."""
        return self._routes

    def find(self, route_id: str) -> Route | None:
        """Return the route that a request means, also one that is only being tried."""
        return self._routes.get(route_id) or self._tried.get(route_id)

    def get(self, route_id: str) -> Route:
        """Return a route. Raises HostError(not_found)."""
        found = self._routes.get(route_id)
        if found is None:
            known = ", ".join(sorted(self._routes)) or "none"
            raise HostError(
                Reason.NOT_FOUND,
                tr("There is no route {route_id}.", route_id=repr(route_id[:100])),
                cause=tr("There are: {known}.", known=known),
                fix=meant_or(Fix(text="See them all.", command="sndr routes list"), route_id, self._routes),
            )
        return found

    def put(self, route_id: str, targets: RouteTargets) -> Route:
        """Make a route, or lead it elsewhere; where it led before is kept.

        Raises HostError(setting_invalid), HostError(conflict) for too many, and what saving raises.
        """
        check_route(route_id, targets)
        old = self._routes.get(route_id)
        if old is not None and old.targets == targets:
            return old
        if old is None and len(self._routes) >= MOST:
            raise HostError(
                Reason.CONFLICT,
                tr("There are {most} routes, as many as there can be.", most=MOST),
                fix=Fix(text="Remove one.", command="sndr routes remove ID"),
            )
        return self._save(
            Route(id=route_id, targets=targets, before=old.targets if old else None, changed_at=time.time())
        )

    def back(self, route_id: str) -> Route:
        """Lead a route where it led before its last change; a second time takes that back.

        Raises HostError(not_found), HostError(conflict) where there was no change, and what saving raises.
        """
        old = self.get(route_id)
        if old.before is None:
            raise HostError(
                Reason.CONFLICT,
                tr("{route_id} has never led elsewhere.", route_id=route_id),
                cause="It was made and not changed since.",
                fix=Fix(
                    text="Move it with a cut-over first.", command=f"sndr routes cutover {route_id} ENGINE"
                ),
            )
        return self._save(Route(id=route_id, targets=old.before, before=old.targets, changed_at=time.time()))

    def remove(self, route_id: str) -> None:
        """Forget a route. Raises HostError(not_found), and what saving raises."""
        self.get(route_id)
        self._store.remove(_KIND, route_id)
        del self._routes[route_id]

    def attempt(self, route_id: str, targets: RouteTargets) -> Route:
        """Make a route that is not saved or listed, under an id that nobody can name by chance."""
        route = Route(id=route_id, targets=targets, changed_at=time.time())
        self._tried[route_id] = route
        return route

    def end_attempt(self, route_id: str) -> None:
        """Forget such a route."""
        self._tried.pop(route_id, None)

    def _save(self, route: Route) -> Route:
        self._store.put(_KIND, route.id, route.changed_at, route.model_dump_json())
        self._routes[route.id] = route
        return route


def check_route(route_id: str, targets: RouteTargets) -> None:
    """Refuse an id or an address that cannot be used. Raises HostError(setting_invalid)."""
    check_id(route_id)
    for one in targets.providers:
        address_of(one.provider.url)
