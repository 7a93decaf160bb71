"""From a model id to who answers: first what the id means, then which of that can answer now."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from engine_host.core.errors import HostError
from engine_host.gateway import error_answers as faults
from engine_host.gateway.directory import Directory, Target
from engine_host.gateway.openai.listing import find
from engine_host.gateway.routing import failures
from engine_host.gateway.routing.book import RouteBook
from engine_host.gateway.routing.elsewhere import NO_OTHERS, OtherMachines
from engine_host.gateway.routing.provider import address_of, key_of
from engine_host.protocol.endpoint.routes import Provider, Route

_LATEST = ":latest"
_MOST_CONVERSATIONS = 4096


@dataclass(frozen=True)
class Meaning:
    """The wish of a request: `name` as it stands there, and the route of that name if there is one.

    `name` is None where the request names no model.
    """

    name: str | None
    route: Route | None = None


class Resolution:
    """Resolves model ids; `load` tells how busy an engine is, as a share of its slots.

    `installed` tells whether a name is that of a model on this machine, which may run or not.
    """

    def __init__(
        self,
        directory: Directory,
        routes: RouteBook | None,
        load: Callable[[Target], float],
        others: OtherMachines = NO_OTHERS,
        installed: Callable[[str], bool] = lambda _name: False,
    ) -> None:
        self._installed = installed
        self._others = others
        self._directory = directory
        self._routes = routes
        self._load = load
        self._kept: OrderedDict[tuple[str, str], str] = OrderedDict()

    def resolve(self, name: str | None, form: faults.Form = faults.Form.OPENAI) -> Meaning:
        """Return what a model id means, whether or not it can answer; a route goes before an engine."""
        if name is None or self._routes is None:
            return Meaning(name)
        route = self._routes.find(name)
        if route is None and form is faults.Form.OLLAMA and not self._is_engine(name):
            route = self._routes.find(name.removesuffix(_LATEST))
        return Meaning(name, route)

    def available(
        self,
        meaning: Meaning,
        conversation: str = "",
        form: faults.Form = faults.Form.OPENAI,
        may_leave: bool | None = None,
    ) -> list[Target]:
        """Return who answers now, and who is asked after it where it takes nothing.

        `may_leave` is what a request says of itself: that it may leave this machine, or may not; None where
        it says nothing. Raises EndpointError where nobody answers, and says what would help.
        """
        if meaning.route is not None:
            return self._of_route(meaning.route, conversation, may_leave)
        return [self._of_name(meaning.name, form)]

    def listed(self) -> list[Target]:
        """Return what can be asked now, for the lists of models: routes first, each by its own id."""
        engines = self._directory.targets()
        if self._routes is None:
            return list(engines)
        found: list[Target] = []
        for route in self._routes.saved.values():
            running = engines_of(route, engines, self._others)
            if running:
                found.append(as_route(running[0], route))
            elif asks_provider(route):
                allowed = next(one for one in route.targets.providers if one.allow_remote)
                found.append(provider_target(route, allowed.provider))
        taken = {target.name for target in found}
        return [*found, *(target for target in engines if target.name not in taken)]

    def loadable(self, known: Sequence[Target]) -> list[Target]:
        """Return what a request would load, by the ids that lead there: the models' own, and routes'."""
        engines = self._directory.targets()
        routes = self._routes.saved.values() if self._routes is not None else ()
        found = list(known)
        for route in routes:
            if engines_of(route, engines, self._others):
                continue
            names = route.targets.engines
            loaded = next((target for name in names for target in known if target.name == name), None)
            if loaded is not None:
                found.append(as_route(loaded, route))
        return found

    def _is_engine(self, name: str) -> bool:
        return any(target.name == name for target in self._directory.targets())

    def _of_route(self, route: Route, conversation: str, may_leave: bool | None) -> list[Target]:
        running = engines_of(route, self._directory.targets(), self._others)
        if may_leave is False and any(target.machine for target in running):
            running = [target for target in running if target.machine is None]
            if not running:
                raise failures.not_allowed(route, by_request=True)
        if running:
            first = self._least_busy(route, running, conversation)
            others = sorted((one for one in running if one is not first), key=self._load)
            return [as_route(one, route) for one in (first, *others)]
        targets = route.targets
        starting = tuple(name for name in targets.engines if name in self._directory.starting())
        if starting:
            raise faults.engine_starting(starting)
        if targets.provider is None or (targets.engines and not targets.fallback):
            raise failures.not_running(route, self._others)
        allowed = [
            one.provider
            for one in targets.providers
            if (one.allow_remote if may_leave is None else may_leave)
        ]
        if not allowed:
            raise failures.not_allowed(route, by_request=may_leave is False)
        found: list[Target] = []
        missing: HostError | None = None
        for provider in allowed:
            try:
                found.append(replace(provider_target(route, provider), key=key_of(provider)))
            except HostError as error:
                missing = missing or error
        if not found and missing is not None:
            raise failures.no_key(route, missing) from missing
        return found

    def _least_busy(self, route: Route, running: Sequence[Target], conversation: str) -> Target:
        """The engine that has the conversation's beginning in its cache, else the one with most room."""
        if len(running) == 1:
            return running[0]
        key = (route.id, conversation)
        kept = self._kept.get(key) if conversation else None
        chosen = next((target for target in running if target.engine == kept), None)
        if chosen is None:
            chosen = min(running, key=self._load)
        if conversation:
            self._kept[key] = chosen.engine
            self._kept.move_to_end(key)
            if len(self._kept) > _MOST_CONVERSATIONS:
                self._kept.popitem(last=False)
        return chosen

    def _of_name(self, name: str | None, form: faults.Form) -> Target:
        """The engine of that name; raises EndpointError for none, one that is starting, or an unknown id."""
        targets = self._directory.targets()
        starting = tuple(self._directory.starting())
        if starting and (name in starting or not targets) and all(t.name != name for t in targets):
            raise faults.engine_starting(starting)
        if name is None:
            if not targets:
                raise faults.no_engine_runs()
            # Some agents leave the model out; with one engine there is no doubt about it.
            if len(targets) == 1:
                return targets[0]
            names = ", ".join(sorted(target.name for target in targets))
            raise faults.invalid(f"model is missing, and several run: {names}. Name one.", param="model")
        if not targets and not self.listed():
            raise faults.no_engine_runs()
        running = {target.name for target in targets}
        if form is faults.Form.OLLAMA and name not in running:
            name = name.removesuffix(_LATEST)
        known = targets if name in running else self.listed()
        if all(target.name != name for target in known) and self._installed(name):
            raise faults.not_loaded(name, [target.name for target in targets if name in target.stands_for])
        return find(known, name)


def engines_of(route: Route, engines: Sequence[Target], others: OtherMachines = NO_OTHERS) -> list[Target]:
    """Return the running engines that a route names, by their own name, their preset or their model.

    Those of other machines are named by their machine and their own name.
    """
    found: dict[str, Target] = {}
    for name in route.targets.engines:
        if others.means(name):
            found |= {target.engine: target for target in others.targets() if target.name == name}
            continue
        own = [target for target in engines if target.name == name]
        for target in own or [target for target in engines if name in target.stands_for]:
            found.setdefault(target.engine, target)
    return list(found.values())


def asks_provider(route: Route) -> bool:
    """Return True if a request of the route may go to its provider while none of its engines runs."""
    targets = route.targets
    return any(one.allow_remote for one in targets.providers) and (targets.fallback or not targets.engines)


def as_route(target: Target, route: Route) -> Target:
    """Return an engine under the id of a route."""
    return replace(target, name=route.id, known_as=target.engine_name, route=led_to(route))


def provider_target(route: Route, provider: Provider) -> Target:
    """Return a route's provider as what answers, without its key."""
    address = address_of(provider.url)
    place = [one.provider for one in route.targets.providers].index(provider)
    return Target(
        engine=f"route:{route.id}" + (f"#{place + 1}" if place else ""),
        name=route.id,
        slots=provider.slots,
        context=provider.context,
        created_at=route.changed_at,
        socket=address.socket,
        url=address.url,
        owned_by=address.name,
        embeddings=provider.embeddings,
        fill_in_the_middle=False,
        tools=provider.tools,
        images=provider.images,
        native_infill=False,
        usage_on_request=True,
        known_as=provider.model,
        provider=address.name,
        route=led_to(route),
    )


def led_to(route: Route) -> tuple[str, ...]:
    """Return what a route leads to, in words; of a provider its model and its host."""
    there = (one.provider for one in route.targets.providers)
    return (*route.targets.engines, *(f"{one.model} at {address_of(one.url).name}" for one in there))


def led_by(routes: RouteBook, route_id: str) -> tuple[str, ...]:
    """Return what a route leads to, in words; nothing where there is no such route."""
    route = routes.saved.get(route_id)
    return led_to(route) if route is not None else ()
