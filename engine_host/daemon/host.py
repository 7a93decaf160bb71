"""The host's services, built here and handed to one another; nothing else knows all of them."""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine_host.core.diagnosis.shelf import AutopsyShelf
from engine_host.core.event_log import EventLog
from engine_host.core.jobs import JobRunner
from engine_host.core.keys.file import KeyFile
from engine_host.core.keys.ring import KeyRing
from engine_host.core.log_buffer import LogBuffer
from engine_host.core.package_data import resources
from engine_host.core.paths import Folders
from engine_host.core.settings import SettingsFile
from engine_host.core.store import Store
from engine_host.daemon.endpoint_target import KeptTargets, target_of_plan
from engine_host.daemon.public_endpoint import PublicEndpoint
from engine_host.daemon.reading.services import Reading
from engine_host.daemon.sources.first_readings import FirstReadings
from engine_host.daemon.sources.measured_now import measured_now
from engine_host.daemon.sources.models import demo_model, read_models_of
from engine_host.engines.last_ran import LastRan
from engine_host.engines.llamacpp.status import LlamaCppAdapter
from engine_host.engines.manager import EngineManager
from engine_host.engines.process.reaper import Reaper
from engine_host.engines.process.reaper_main import OWNER_VARIABLE
from engine_host.engines.vllm.status import VllmAdapter
from engine_host.gateway.access.moved_port import MovedPort
from engine_host.gateway.app import Gateway, Limits
from engine_host.gateway.directory import Target
from engine_host.gateway.routing.book import RouteBook
from engine_host.gateway.routing.resolution import led_by
from engine_host.launch.dependencies import PlannerDependencies
from engine_host.launch.preflight.turboquant import PATCH
from engine_host.launch.proofs import KernelProofs
from engine_host.launch.room import RoomCheck
from engine_host.operations.autopsies.operations import AutopsyOperations
from engine_host.operations.autopsies.recorder import FlightRecorder
from engine_host.operations.endpoint.models import EndpointModelOperations
from engine_host.operations.engines import EngineOperations
from engine_host.operations.host import HostOperations, Lifetime
from engine_host.operations.installations import InstallationOperations
from engine_host.operations.keys import KeyOperations
from engine_host.operations.library.services import library_services
from engine_host.operations.measurements.alerts import AlertOperations
from engine_host.operations.measurements.services import measurement_services
from engine_host.operations.on_demand.entries import Entries
from engine_host.operations.on_demand.loads import OnDemandModels
from engine_host.operations.on_demand.operations import OnDemandOperations
from engine_host.operations.on_demand.room import LoadRoom
from engine_host.operations.patches.bisect import BisectOperations, EndpointAddress
from engine_host.operations.patches.catalog import PatchOperations
from engine_host.operations.patches.of_engines import (
    EnginePatchOperations,
    EnginePatchTracker,
    remove_stale_ledgers,
)
from engine_host.operations.patches.plan import PatchPlans
from engine_host.operations.performs import Later
from engine_host.operations.plans import PlanOperations
from engine_host.operations.presets.launch import PresetLaunches
from engine_host.operations.presets.verify import PresetVerifyOperations
from engine_host.operations.records import RecordOperations
from engine_host.operations.remote.services import remote_services
from engine_host.operations.requests.log import RequestOperations
from engine_host.operations.routes.kept import RouteOperations
from engine_host.operations.servers import ServerOperations
from engine_host.operations.staging.pin import setting_services
from engine_host.operations.staging.places import Here
from engine_host.operations.staging.services import staging_services
from engine_host.overlay.bundle import prune
from engine_host.overlay.patch_catalog import BUILT_IN
from engine_host.overlay.patch_hash import patch_hash
from engine_host.protocol.engines import EngineState, Readings
from engine_host.protocol.events import (
    EngineReadingsEvent,
    EngineRequestEvent,
    EventBase,
    ServersChangedEvent,
    SettingsChangedEvent,
)
from engine_host.protocol.host import Reach
from engine_host.protocol.operations.table import RENDER
from engine_host.remote.book import HostBook
from engine_host.remote.engines import RemoteEngines
from engine_host.remote.hosts import RemoteHosts
from engine_host.telemetry.history import History
from engine_host.telemetry.machine import free_memory
from engine_host.telemetry.playback import TracePlayer
from engine_host.telemetry.sample_store import open_samples
from engine_host.telemetry.sampler import Sampler

if TYPE_CHECKING:
    from engine_host.operations.deploy import DeployOperations

_OF_THE_ADDRESS = {"endpoint.host", "endpoint.port", "endpoint.tls_certificate", "endpoint.tls_key"}


class Host:
    """Everything the host does, from `open` to `close`."""

    def __init__(
        self,
        folders: Folders,
        settings: SettingsFile,
        events: EventLog,
        log_buffer: LogBuffer,
        own_files: Sequence[Path],
        quit_host: Callable[[], None],
    ) -> None:
        self.lifetime = Lifetime()
        self._folders = folders
        self._settings = settings
        self._events = events
        self._log_buffer = log_buffer
        self._own_files = own_files
        self._quit = quit_host
        self._closed = self._opened = False
        self._reading: asyncio.Task[None] | None = None

    async def open(self, host: str | None, port: int | None, *, resumes: bool) -> None:
        """Build the services, take up kept engines, bind the endpoint; load models where it `resumes`.

        Raises HostError when the database, the keys or the endpoint's address stop it.
        """
        publish = self._events.publish
        endpoint = self._settings.current.endpoint
        key_file = KeyFile(self._folders.config)
        self._keys = KeyRing(key_file.read())
        self.endpoint = PublicEndpoint(
            lambda: self._settings.current.endpoint,
            self._keys,
            publish,
            MovedPort(self._folders.data / "endpoint-port", lambda: self._settings.is_set("endpoint.port")),
        )
        self.endpoint.bind(host, port)
        self._store = Store(self._folders.store)
        self._opened = True
        # Children inherit the mark; only an engine that is kept is started without it.
        os.environ[OWNER_VARIABLE] = self._events.run_id
        self._reaper = Reaper(self._events.run_id)
        for path in self._own_files:
            self._reaper.remove_with_host(path)
        self._jobs = JobRunner(publish, self._store)
        self._jobs.restore()
        self._last_ran = LastRan(self._store, self._jobs.all)
        reading = Reading(
            *(self._folders, self._settings, self._events, lambda: self._store),
            stop=lambda: self._closed,
            running=lambda: self.engines.alive(),
            held=lambda engine: self.engines.memory(engine),
            endpoint=lambda: self.endpoint.findings,
        )
        self.model_index, self.models, self.servers = reading.model_index, reading.models, reading.servers
        book = self._patch_tracker = EnginePatchTracker(self._events, self._folders.run)
        self.engines = EngineManager(
            self._folders,
            self._engine_changed,
            self._jobs,
            self._store,
            self._log_buffer,
            self._reaper,
            {"llama.cpp": LlamaCppAdapter(), "vllm": VllmAdapter()},
            drain=lambda engine, seconds: self.gateway.drain(engine, seconds),
            watcher=self._patch_tracker,
            gone=lambda engine: self.gateway.forget(engine),
            room=lambda plan: room(plan),
        )
        routes = RouteBook(self._store)
        self.remote = RemoteHosts(HostBook(self._store), self._folders, self._reaper, publish, os.environ)
        others = RemoteEngines(self.remote).others()
        self.on_demand = OnDemandModels(
            self.engines,
            self._jobs,
            publish,
            plan=lambda request: load_room.plan(request),
            start=lambda plan: self._start_on_demand(plan),
            at_work=lambda engine: (
                self.gateway.request_log.active(engine) + self.gateway.request_log.waiting(engine)
            ),
        )
        self._targets = KeptTargets()
        self.gateway = Gateway(
            self,
            self._request_changed,
            routes=routes,
            keys=self._keys,
            allowed_hosts=lambda: frozenset(self._settings.current.endpoint.allowed_hosts),
            limits=Limits(queue=endpoint.queue_limit),
            on_activity=self._active,
            base_path=lambda: self._settings.current.endpoint.path,
            loader=self.on_demand,
            load_wait=lambda: self._settings.current.endpoint.load_wait,
            others=others,
            installed=lambda name: self.model_index.has(name),
            measured=lambda: measured_now(sampler, self._gpus, played, self._readings(), book, self.remote),
        )
        self.gateway.request_log.together = True
        self._machine, self._gpus, played = reading.monitor, reading.gpus, TracePlayer(self._settings)
        machine, self.installations = reading.machine, reading.installations
        self._history = History(open_samples(self._folders.samples))
        alerts = self._alerts = AlertOperations(self._events, self._store, self._settings, self._folders)
        measured = (self._machine, self._gpus, self._history, alerts.publish, self._readings)
        sampler = self._sampler = Sampler(*measured, player=played)
        catalogue, consents = reading.presets, reading.consents
        checks = PresetVerifyOperations(self._jobs, self._store, catalogue, self.models.listed)
        proofs = KernelProofs(self._store, lambda: patch_hash(BUILT_IN / PATCH))
        planner = PlannerDependencies(
            find_model=self.model_index.find,
            find_server=self.servers.find,
            find_environment=reading.environment,
            plan_patches=PatchPlans(reading.patch_catalog, reading.switches, self._folders.cache),
            settings=self._settings,
            free_memory=free_memory,
            total_memory=self._machine.facts.ram_total,
            gpus=reading.gpus_now,
            running=self.engines.alive,
            run_folder=self._folders.run,
            cache_folder=self._folders.cache,
            find_preset=PresetLaunches(catalogue, self.models.listed, checks, consents),
            is_preset=catalogue.known,
            machine=machine.state,
            proof=proofs.of,
            held=self.engines.memory,
            route=lambda name: led_by(routes, name),
        )
        room, plans = RoomCheck(planner), PlanOperations(planner)
        alive, root = self.engines.alive, reading.model_folders.hub_downloads
        load_room = LoadRoom(plans, room, alive, self.on_demand.evictable, self.on_demand.is_idle)
        library = library_services(
            self._jobs, self._events, self._store, self._folders, self.models, reading.hub, root, alive
        )
        self.fit = reading.fit
        self._first_readings = FirstReadings(self.fit)
        shelf, requests = AutopsyShelf(self._folders.autopsies), self.gateway.request_log
        self._recorder = FlightRecorder(
            shelf, self._history, requests, self._gpus, self.fit.fit, self._events
        )
        self._patch_tracker.stage, self.engines.explain = self.engines.stage, self._recorder.explain
        installations = InstallationOperations(
            self._folders, self._jobs, self._events, self._log_buffer, self.installations, self.engines.alive
        )
        bisections = BisectOperations(self._jobs, self.engines, plans, self._endpoint_address)
        others_wait, last = bisections.refuse_others, self._last_ran
        started = EngineOperations(self.engines, plans, others_wait, self._events, consents, last)
        on_demand = OnDemandOperations(
            Entries(self._store),
            self.on_demand,
            plans,
            consents,
            self._events,
            lambda plan: target_of_plan(plan, self.model_index.known(plan.model_path)),
        )
        here = Here(self.engines, started, self.on_demand.is_known)
        self._start_on_demand = started.start_planned

        def deploy() -> "DeployOperations":
            from engine_host.operations.deploy import DeployOperations
            from engine_host.operations.deploy_fit import DeployFit

            return DeployOperations(
                catalogue,
                plans,
                reading.patch_catalog,
                reading.switches,
                self.model_index.find,
                self.servers.find,
                reading.environment,
                reading.gpus_now,
                resources,
                DeployFit(catalogue, self.fit),
                consents,
            )

        self.services: tuple[object, ...] = (
            *remote_services(
                self.remote, self._events, self._jobs, self._folders, os.environ, self.models, deploy
            ),
            HostOperations(
                *(self._folders, self._events, self._machine, self._gpus, lambda: played.shown),
                *(self.endpoint.describe, self.lifetime, self._quit),
            ),
            KeyOperations(
                key_file, self._keys, self._events, lambda: self.endpoint.describe().reach is Reach.NETWORK
            ),
            *staging_services(self.remote, here, routes, self.gateway, self._jobs, self._store, self._events),
            RouteOperations(
                *(routes, self, self._events, catalogue),
                self.models.listed,
                self.on_demand.is_known,
                self.gateway.providers.of,
                others,
            ),
            EndpointModelOperations(
                *(self.gateway.listed, self.gateway.loadable, self._events, self.engines.saved.ended),
                self.on_demand.is_being_planned,
            ),
            *setting_services(
                *(self._settings, self._events, self.endpoint.describe, self._settings_changed),
                *(installations, self._jobs),
            ),
            RecordOperations(self._jobs, self._log_buffer, self._history, self._store, self._events),
            *library,
            ServerOperations(
                *(self._folders, self._jobs, self._store, self._events, self._log_buffer),
                self.servers,
                demo_model,
                lambda: self._settings.current.engine.server,
                reading.gpus_now,
            ),
            installations,
            PatchOperations(
                reading.patch_catalog,
                self._settings,
                self._settings_changed,
                self.installations,
                plans,
                catalogue,
                self._events,
            ),
            bisections,
            *measurement_services(
                *(self._jobs, self._events, self._log_buffer, self._store),
                plans,
                proofs,
                self.engines,
                self._patch_tracker,
                self._first_readings.also,
                lambda: self._settings.current.engine.verify,
                self.model_index.find,
                reading.environment,
                *(machine.words, self._gpus, self._history, self.fit.ceiling_of),
                self.fit.fit,
                self.gateway.prefixes,
                self._folders,
                *(others_wait, lambda: played.shown),
            ),
            AutopsyOperations(shelf, self._events),
            self._alerts,
            EnginePatchOperations(self._patch_tracker, self.engines, plans, others_wait),
            self.fit,
            catalogue,
            reading.own_presets,
            checks,
            reading.verdicts,
            plans,
            started,
            RequestOperations(
                self.engines.get,
                self.gateway.request_log,
                self.gateway.prefixes,
                self.gateway.captures,
                lambda: (self.endpoint.describe().local_url or "").removesuffix("/v1"),
                self._events,
            ),
            on_demand,
            Later((RENDER,), deploy),
        )
        await self.engines.adopt()
        await read_models_of(self.engines.alive(), self.model_index)
        await installations.recover()
        remove_stale_ledgers(self._folders.run, {engine.plan.id: engine for engine in self.engines.alive()})
        # No plan was made yet, so nothing but these engines needs a bundle that is old.
        used = [engine.plan.patches.digest for engine in self.engines.alive() if engine.plan.patches]
        await asyncio.to_thread(prune, self._folders.cache, used)
        self._sampler.start()
        self.on_demand.open()
        self._reading = asyncio.create_task(on_demand.open(loads=resumes), name="models on demand")

    async def close(self) -> None:
        """End everything in order; a second call does nothing."""
        if self._closed or not self._opened:
            return
        self._closed = True
        if self._reading is not None:
            self._reading.cancel()
        await self.on_demand.close()
        await self._jobs.close()
        await self._first_readings.close()
        await self.gateway.aclose()
        await self.remote.close()
        await self.engines.close()
        await self._recorder.close()
        await self._patch_tracker.close()
        await self._sampler.aclose()
        await self._alerts.close()
        self._reaper.close()
        os.environ.pop(OWNER_VARIABLE, None)

    def release(self) -> None:
        """Close the database; requests that were still at work during `close` have been answered by now."""
        if self._opened:
            self._store.close()
            self._history.close()

    def targets(self) -> Sequence[Target]:
        """For the endpoint: the engines that answer."""
        known, socket = self.model_index.known, self.engines.socket
        return self._targets.of(
            (engine, known(engine.plan.model_path), socket(engine), self.on_demand.expires_at(engine.id))
            for engine in self.engines.serving()
        )

    def starting(self) -> Sequence[str]:
        """For the endpoint: the models on their way up."""
        return [
            engine.name
            for engine in self.engines.alive()
            if engine.state in {EngineState.PREPARING, EngineState.STARTING}
        ]

    def _active(self, engine: str, requests: int) -> None:
        """Told by the endpoint: how many requests an engine answers now."""
        self.engines.activity(engine, requests)
        self.on_demand.activity(engine, requests)

    def outlives_window(self) -> bool:
        """Tell whether the host goes on when the window that started it is gone."""
        return (
            self.lifetime.stays
            or self._settings.current.host.outlive_window
            or any(engine.keep for engine in self.engines.alive())
        )

    def _engine_changed(self, event: EventBase) -> None:
        """Publish what changed; the first readings of a start are compared with its prediction."""
        self._alerts.publish(event)
        self._recorder.take(event)
        self._last_ran.take(event)
        if not isinstance(event, EngineReadingsEvent):
            return
        self._sampler.add_reading(event.engine, event.readings)
        self._first_readings.take(self.engines.get(event.engine))

    def _request_changed(self, event: EventBase) -> None:
        """Publish what the endpoint says; what it measured of a request becomes part of the graphs."""
        self._events.publish(event)
        if isinstance(event, EngineRequestEvent):
            self._sampler.add_request(event.request)

    def _endpoint_address(self) -> EndpointAddress:
        key = self._keys.own if self._keys.needed else None
        return EndpointAddress(self.endpoint.describe().local_url or "", key)

    def _readings(self) -> Mapping[str, Readings]:
        """For the graphs: what the engines say, with the requests that wait at our own door."""
        waiting = self.gateway.request_log.waiting
        return {
            engine.id: engine.readings.model_copy(update={"requests_waiting": waiting(engine.id)})
            for engine in self.engines.serving()
            if engine.readings is not None
        }

    async def _settings_changed(self, names: tuple[str, ...]) -> None:
        self._events.publish(SettingsChangedEvent(names=names))
        if any(name.startswith("models.") for name in names):
            await self.models.scan()
        if any(name.startswith("engine.") for name in names):
            self._events.publish(ServersChangedEvent())
        if "endpoint.queue_limit" in names:
            self.gateway.set_queue_limit(self._settings.current.endpoint.queue_limit)
        if "host.log_level" in names:
            logging.getLogger().setLevel(self._settings.current.host.log_level.upper())
        if _OF_THE_ADDRESS & set(names):
            self._keys.replace(KeyFile(self._folders.config).read())
            await self.endpoint.move()
