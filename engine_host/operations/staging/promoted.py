"""The last promotion of each public id, as it is kept: what a roll-back needs to know."""

import logging
from collections.abc import Mapping

from pydantic import ValidationError

from engine_host.core.store import Store
from engine_host.protocol.endpoint.routes import Route
from engine_host.protocol.remote.staging import Promotion

_log = logging.getLogger(__name__)
_KIND = "promotion"
_MOST = 200


class PromotionBook:
    """The promotions in the database, one for each public id."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def keep(self, promotion: Promotion) -> None:
        """Keep one in the place of the last of its id. Raises what saving raises."""
        self._store.put(_KIND, promotion.id, promotion.at, promotion.model_dump_json())
        self._store.prune(_KIND, _MOST)

    def forget(self, route_id: str) -> None:
        """Forget the promotion of an id: it was taken back. Raises what saving raises."""
        self._store.remove(_KIND, route_id)

    def all(self) -> list[Promotion]:
        """Return all, newest first; what is none of this version is left out, and said in the log."""
        found = []
        for body in self._store.newest(_KIND, _MOST):
            try:
                found.append(Promotion.model_validate_json(body))
            except ValidationError as error:
                _log.warning("a promotion of another version of this program is left out: %s", error)
        return found

    def of(self, route: Route) -> Promotion | None:
        """Return the promotion by which a route leads where it does; None where it was moved since."""
        return next((one for one in self.all() if one.id == route.id and one.route == route), None)

    def standing(self, routes: Mapping[str, Route]) -> list[Promotion]:
        """Return those by which these routes lead where they do, newest first."""
        return [one for one in self.all() if one.route is not None and routes.get(one.id) == one.route]
