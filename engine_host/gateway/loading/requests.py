"""Requests for models that are loaded on demand: which have to wait, and how each waits and goes on."""

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from starlette.types import Receive, Send

from engine_host.core.did_you_mean import near_names
from engine_host.core.errors import HostError
from engine_host.gateway import error_answers as faults
from engine_host.gateway.access.admission import Admission, loading_queue
from engine_host.gateway.directory import Directory, Target
from engine_host.gateway.loading.lm_studio import LoadWish, loaded_otherwise, not_on_demand, started_by_hand
from engine_host.gateway.loading.lm_studio import loaded as loaded_by_client
from engine_host.gateway.loading.loader import Load, Loader
from engine_host.gateway.loading.wait import LOADING, LoadWait, load_failed, wait_limit
from engine_host.gateway.ollama.keep_alive import seconds
from engine_host.gateway.ollama.lines import loaded
from engine_host.gateway.ollama.request import is_load
from engine_host.gateway.openai.bodies import ClientGoneError
from engine_host.gateway.request_log import Entry
from engine_host.gateway.routes.rows import ReadRequest
from engine_host.gateway.routes.table import OLLAMA_LOADS
from engine_host.gateway.routing.resolution import Meaning, engines_of
from engine_host.gateway.sending import send_fault
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.errors import Reason

_log = logging.getLogger(__name__)
_LATEST = ":latest"

Answer = TypeVar("Answer")


class OnDemandRequests:
    """Has models loaded for requests; a request waits in the queue of its model meanwhile."""

    def __init__(
        self,
        loader: Loader,
        directory: Directory,
        admission: Admission,
        refused: Callable[[faults.EndpointError], None],
        limit: Callable[[], float],
        note: float,
    ) -> None:
        """`refused` counts an error; a request waits `limit` seconds at most, and pings come each `note`."""
        self._loader = loader
        self._directory = directory
        self._admission = admission
        self._refused = refused
        self._limit = limit
        self._note = note

    def loadable(self) -> Sequence[Target]:
        """Return the models that a request would load."""
        return self._loader.loadable()

    def waiting(self) -> dict[str, int]:
        """Return how many requests wait for the load of each model."""
        return {
            target.name: self._admission.waiting(loading_queue(target.name))
            for target in self._loader.loadable()
        }

    def to_load(self, request: ReadRequest, meaning: Meaning) -> str | None:
        """Return the model that has to be loaded for a request; None where one answers, or none may be.

        Raises EndpointError 404 for an unknown name where nothing runs and others could be loaded.
        """
        if meaning.route is not None:
            names = [name for name in meaning.route.targets.engines if self._loader.is_known(name)]
            if not names or engines_of(meaning.route, self._directory.targets()):
                return None
            return names[0]
        if meaning.name is None:
            # As with one engine: with one model that can be loaded there is no doubt about it.
            loadable = self._loader.loadable()
            return loadable[0].name if len(loadable) == 1 and not self._directory.targets() else None
        known = self._known(meaning.name, request.form)
        if known is None:
            loadable = self._loader.loadable()
            if loadable and not self._directory.targets() and not self._directory.starting():
                raise unknown(meaning.name, [target.name for target in loadable])
            return None
        running = {target.name for target in self._directory.targets()}
        return known if running.isdisjoint({known, meaning.name}) else None

    def touch(self, request: ReadRequest, target: Target) -> None:
        """Note the use of a model; raises EndpointError 400 for a keep_alive that is no duration."""
        self._loader.touch(target.engine, _keep_alive(request))

    def ended_by(self, request: ReadRequest) -> bytes | None:
        """End the model that a client of Ollama wants ended, and return the answer; None for any other.

        Raises EndpointError 400 for a keep_alive that is no duration.
        """
        if request.path not in OLLAMA_LOADS or not is_load(request.body) or _keep_alive(request) != 0:
            return None
        known = self._known(request.body.get("model"), request.form)
        if known is None:
            return None
        try:
            self._loader.unload(known)
        except HostError:
            # Somebody started it by hand: it stays.
            return None
        return loaded(known, is_chat=request.path == "/api/chat", unload=True)

    async def after_load(
        self,
        request: ReadRequest,
        name: str,
        admitted: Callable[[bool], Awaitable[Answer]],
        send: Send,
        entry: Entry | None = None,
    ) -> Answer | None:
        """Return what `admitted` makes of a request once its model is loaded; None when it has been answered.

        `admitted` is told whether the headers of a stream are sent already. `entry` is the request in the
        log, from where it can be cancelled.
        """
        limit = wait_limit(request.headers.get("prefer"), self._limit())
        # Ollama's lines of JSON have nothing that keeps a connection alive and says nothing.
        pings = request.wants_events
        wait = LoadWait(name, request.request_id, pings=pings, limit=limit, note=self._note)
        if entry is not None:
            entry.stop = wait.stop
        owner = request.key.id if request.key else ""
        try:
            keep_alive = _keep_alive(request)
            async with self._joined(name, owner, keep_alive) as load:
                await wait.wait(load, request.receive, send)
                # It has a slot, or a place in the queue, before anybody may take the model for idle.
                return await admitted(wait.begun)
        except ClientGoneError:
            return None
        except faults.EndpointError as error:
            fault = error
        except Exception:  # noqa: BLE001 - whatever happened, the client is told
            _log.exception("%s could not be answered after its load", request.request_id)
            fault = faults.internal()
        self._refused(fault)
        if entry is not None:
            entry.failed(fault.problem())
        if wait.begun:
            await wait.fail(send, fault, request.path, request.body)
        else:
            await send_fault(send, fault, request.request_id, request.form)
        return None

    async def load(
        self,
        wish: LoadWish,
        owner: str,
        request_id: str,
        prefer: str | None,
        receive: Receive,
        send: Send,
    ) -> dict[str, Any]:
        """Load a model as a client of LM Studio asks; raises EndpointError and ClientGoneError."""
        began = time.monotonic()
        target = self._running(wish.name)
        if target is None:
            if not self._loader.is_known(wish.name):
                raise not_on_demand(wish.name)
            limit = wait_limit(prefer, self._limit())
            wait = LoadWait(wish.name, request_id, pings=False, limit=limit, note=self._note)
            overrides = wish.overrides if wish.is_other else None
            async with self._joined(wish.name, owner, None, overrides) as load:
                await wait.wait(load, receive, send)
            target = self._running(wish.name)
            if target is None:
                raise faults.engine_unreachable(wish.name)
            if load.overrides == overrides:
                return loaded_by_client(wish, target, time.monotonic() - began)
        asked = wish.overrides.context
        if asked is not None and not target.has_context(asked):
            raise loaded_otherwise(target)
        return loaded_by_client(wish, target, time.monotonic() - began)

    def unload(self, name: str) -> dict[str, Any]:
        """End a model as a client of LM Studio asks; raises EndpointError 404, 409."""
        if not self._loader.is_known(name):
            raise started_by_hand(name) if self._running(name) is not None else not_on_demand(name)
        try:
            self._loader.unload(name)
        except HostError as error:
            raise faults.EndpointError(
                409, "started_by_hand", error.problem.sentence(), Reason.CONFLICT, "instance_id"
            ) from error
        return {"instance_id": name}

    @asynccontextmanager
    async def _joined(
        self, name: str, owner: str, keep_alive: float | None, overrides: Overrides | None = None
    ) -> AsyncIterator[Load]:
        """A load that is waited for within; raises EndpointError."""
        ticket = self._admission.enter_loading(name, owner)
        goes_on = False
        load: Load | None = None
        try:
            load = self._loader.join(name, keep_alive, overrides)
            yield load
        except HostError as error:
            raise load_failed(name, error.problem) from error
        except faults.EndpointError as fault:
            goes_on = fault.code == LOADING
            raise
        finally:
            self._admission.release(ticket)
            if load is not None:
                self._loader.leave(load, goes_on=goes_on)

    def _running(self, name: str) -> Target | None:
        return next((target for target in self._directory.targets() if target.name == name), None)

    def _known(self, name: object, form: faults.Form) -> str | None:
        """The name of a model that requests may load; None for any other."""
        if not isinstance(name, str):
            return None
        names = (name, name.removesuffix(_LATEST)) if form is faults.Form.OLLAMA else (name,)
        return next((one for one in names if self._loader.is_known(one)), None)


def unknown(name: str, loadable: Sequence[str]) -> faults.EndpointError:
    """No model of this name, where nothing runs; others are loaded when they are asked for."""
    near = near_names(name[:200], loadable)
    meant = f" Did you mean {near[0]}?" if near else ""
    return faults.EndpointError(
        404,
        "model_not_found",
        f"There is no model {name[:200]!r} here.{meant} Loaded on demand: {', '.join(loadable)}. "
        "Start another, or let requests load it, with: sndr run MODEL --on-demand",
        Reason.NOT_FOUND,
        "model",
    )


def _keep_alive(request: ReadRequest) -> float | None:
    """The keep-alive that a client of Ollama asks for, in seconds; raises EndpointError 400."""
    return seconds(request.body.get("keep_alive")) if request.form is faults.Form.OLLAMA else None
