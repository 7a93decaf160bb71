"""The control API of a rig: real jobs, engines, settings and plans; the engine and the models are FAKE."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
from starlette.types import ASGIApp, Receive, Scope, Send

from engine_host.api.app import control_app
from engine_host.core.diagnosis.shelf import AutopsyShelf
from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.keys.file import KeyFile
from engine_host.core.keys.ring import KeyRing
from engine_host.core.package_data import presets, resources
from engine_host.core.settings import SettingsFile
from engine_host.engines.last_ran import LastRan
from engine_host.engines.llamacpp.servers import ServerCapabilities
from engine_host.engines.vllm.installations import VllmInstallations
from engine_host.gateway.app import Gateway
from engine_host.gateway.directory import Target
from engine_host.gateway.inspection.capture import Captures
from engine_host.gateway.inspection.prefix_lens import PrefixLens
from engine_host.gateway.request_log import RequestLog
from engine_host.gateway.routing.book import RouteBook
from engine_host.launch.dependencies import PlannerDependencies
from engine_host.launch.preflight.machine import MachineState
from engine_host.launch.proofs import KernelProofs
from engine_host.library.hub.configs import Hub
from engine_host.library.index import IndexedModel, ModelIndex
from engine_host.operations.autopsies.operations import AutopsyOperations
from engine_host.operations.deploy import DeployOperations
from engine_host.operations.deploy_fit import DeployFit
from engine_host.operations.endpoint.models import EndpointModelOperations
from engine_host.operations.engines import EngineOperations
from engine_host.operations.fit import FitOperations
from engine_host.operations.host import HostOperations, Lifetime
from engine_host.operations.hub import HubOperations
from engine_host.operations.installations import InstallationOperations
from engine_host.operations.keys import KeyOperations
from engine_host.operations.library.services import library_services
from engine_host.operations.measurements.alerts import AlertOperations
from engine_host.operations.measurements.services import measurement_services
from engine_host.operations.models import ModelOperations
from engine_host.operations.on_demand.entries import Entries
from engine_host.operations.on_demand.loads import OnDemandModels
from engine_host.operations.on_demand.operations import OnDemandOperations
from engine_host.operations.patches.bisect import BisectOperations, EndpointAddress
from engine_host.operations.patches.catalog import PatchOperations
from engine_host.operations.patches.of_engines import EnginePatchOperations, EnginePatchTracker
from engine_host.operations.performs import Later, performs
from engine_host.operations.plans import PlanOperations
from engine_host.operations.presets.catalog import PresetOperations
from engine_host.operations.presets.consents import PresetConsents
from engine_host.operations.presets.own import OwnPresetOperations
from engine_host.operations.presets.verdicts import PresetVerdictOperations
from engine_host.operations.presets.verify import PresetVerifyOperations
from engine_host.operations.records import RecordOperations
from engine_host.operations.remote.services import remote_services
from engine_host.operations.requests.log import RequestOperations
from engine_host.operations.routes.kept import RouteOperations
from engine_host.operations.settings import SettingOperations
from engine_host.operations.staging.pin import PinOperations
from engine_host.operations.staging.places import Here
from engine_host.operations.staging.services import staging_services
from engine_host.overlay.patch_catalog import PatchCatalog
from engine_host.overlay.selection import Switches
from engine_host.protocol.engines import Backend, ServerBuild, ServerPage
from engine_host.protocol.errors import Reason
from engine_host.protocol.host import Endpoint, Reach
from engine_host.protocol.jobs import Job, JobKind
from engine_host.protocol.launch.plans import LaunchPlan, ServerChoice
from engine_host.protocol.models import ModelFile
from engine_host.protocol.operations import table as ops
from engine_host.remote.book import HostBook
from engine_host.remote.hosts import RemoteHosts
from engine_host.telemetry.gpus import GpuReading, Gpus
from engine_host.telemetry.history import History
from engine_host.telemetry.machine import MachineMonitor
from tests.unit.engines.rig import Rig, rig
from tests.unit.launch.models import no_environment, no_patches

TOKEN = "the-token"


class FakeServers:
    """Servers of which none can be built."""

    def __init__(self, built: Rig) -> None:
        self._rig = built
        self.asked = 0
        self.backends: list[Backend] = []

    @performs(ops.SERVERS)
    async def page(self) -> ServerPage:
        return ServerPage(seq=0, servers=(), next_start=None)

    @performs(ops.BUILD_SERVER)
    def build(self, asked: ServerBuild) -> Job:
        self.asked += 1
        self.backends.append(asked.backend)

        async def work(_control: object) -> dict[str, Any]:
            await asyncio.Event().wait()
            return {}

        return self._rig.jobs.start(JobKind.ENGINE_BUILD, "Build", "build", "sndr engine build", work)

    @performs(ops.COMPARE_SERVERS)
    def compare(self) -> Job:
        raise KeyError("a defect")


class NoEngines:
    """A directory without engines."""

    def targets(self) -> tuple[Target, ...]:
        """None runs."""
        return ()

    def starting(self) -> tuple[str, ...]:
        """None starts."""
        return ()


class NoGpus(Gpus):
    """A driver that cannot be asked."""

    def read_with_holders(self, name_of: Callable[[int], str]) -> GpuReading:
        raise HostError(Reason.INTERNAL, "not here")


@dataclass
class Door:
    """The API's application, a client with the token, and what is behind it."""

    app: ASGIApp
    client: httpx.AsyncClient
    rig: Rig
    events: EventLog
    settings: SettingsFile
    servers: FakeServers
    changed: list[tuple[str, ...]] = field(default_factory=list)
    quits: list[bool] = field(default_factory=list)


async def _endpoint(scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": json.dumps(scope["path"]).encode()})


async def _no_server(wanted: ServerChoice) -> ServerCapabilities:
    raise HostError(Reason.ENGINE_UNUSABLE, f"There is no server {wanted}.")


async def _no_model(wanted: str, _formats: Collection[str]) -> IndexedModel:
    raise HostError(Reason.MODEL_FILE_MISSING, f"There is no model {wanted}.")


def _listed_plan(plan: LaunchPlan) -> Target:
    return Target("none", plan.name, 1, plan.context, plan.created_at, socket="")


async def _no_models() -> tuple[ModelFile, ...]:
    return ()


async def _listed(_rescan: bool) -> tuple[ModelFile, ...]:
    return ()


@asynccontextmanager
async def door() -> AsyncIterator[Door]:
    """An open control API."""
    async with rig() as built:
        events = EventLog()
        settings = SettingsFile(built.folders.settings)
        settings.load()
        servers = FakeServers(built)
        quits: list[bool] = []
        changed: list[tuple[str, ...]] = []

        async def settings_changed(names: tuple[str, ...]) -> None:
            changed.append(names)

        plans = PlanOperations(
            PlannerDependencies(
                find_model=_no_model,
                find_server=_no_server,
                find_environment=no_environment,
                plan_patches=no_patches,
                settings=settings,
                free_memory=lambda: 1 << 30,
                total_memory=1 << 34,
                gpus=lambda: (),
                running=built.manager.alive,
                run_folder=built.folders.run,
                cache_folder=built.folders.cache,
            )
        )
        consents, routes = PresetConsents(built.store), RouteBook(built.store)
        gateway = Gateway(NoEngines(), events.publish, routes=routes)
        catalogue = PresetOperations(presets, built.folders.config / "presets", settings, events, lambda: ())
        downloads = built.folders.data / "models"
        models = ModelOperations(ModelIndex(lambda: ()), settings, events, lambda: downloads)
        hub = HubOperations(Hub(built.folders.cache / "hub", os.environ))
        library = library_services(
            built.jobs,
            events,
            built.store,
            built.folders,
            models,
            hub,
            lambda: built.folders.cache / "hub-downloads",
            built.manager.alive,
        )
        fits = FitOperations(
            _no_model,
            _no_models,
            catalogue,
            lambda: (),
            lambda: (1 << 34, 1 << 33),
            MachineState,
            built.manager.alive,
            built.store,
            hub.model,
        )
        endpoint = Endpoint(
            url="http://127.0.0.1:1/v1",
            host="127.0.0.1",
            port=1,
            wanted_port=1,
            reach=Reach.THIS_MACHINE,
            key_required=False,
        )
        environments = VllmInstallations(built.folders.cache / "vllm-environments", lambda: False)
        installations = InstallationOperations(
            built.folders, built.jobs, events, built.log_buffer, environments, built.manager.alive
        )
        shown_settings = SettingOperations(settings, events, lambda: endpoint, settings_changed)
        bisections = BisectOperations(
            built.jobs, built.manager, plans, lambda: EndpointAddress("http://endpoint/v1")
        )
        last_ran = LastRan(built.store, built.jobs.all)
        started = EngineOperations(built.manager, plans, bisections.refuse_others, events, consents, last_ran)
        on_demand = OnDemandModels(
            built.manager, built.jobs, events.publish, plans.plan, started.start_planned, lambda _: 0
        )
        remote = RemoteHosts(HostBook(built.store), built.folders, built.reaper, events.publish, {})
        deploy = DeployOperations(
            catalogue,
            plans,
            PatchCatalog.load,
            Switches,
            _no_model,
            _no_server,
            no_environment,
            lambda: (),
            resources,
            DeployFit(catalogue, fits),
            consents,
        )
        patches = EnginePatchTracker(events, built.folders.run)
        services = (
            *remote_services(remote, events, built.jobs, built.folders, {}, models, lambda: deploy),
            HostOperations(
                built.folders,
                events,
                MachineMonitor(),
                NoGpus(),
                lambda: None,
                lambda: endpoint,
                Lifetime(),
                lambda: quits.append(True),
            ),
            KeyOperations(KeyFile(built.folders.config), KeyRing(), events, lambda: False),
            EndpointModelOperations(NoEngines().targets, tuple, events),
            *staging_services(
                remote,
                Here(built.manager, started, lambda _: False),
                routes,
                gateway,
                built.jobs,
                built.store,
                events,
            ),
            RouteOperations(
                routes, NoEngines(), events, catalogue, _listed, lambda _: False, gateway.providers.of
            ),
            shown_settings,
            PinOperations(installations, shown_settings, built.jobs),
            RecordOperations(built.jobs, built.log_buffer, History(), built.store, events),
            *library,
            servers,
            installations,
            PatchOperations(
                PatchCatalog.load, settings, settings_changed, environments, plans, catalogue, events
            ),
            bisections,
            *measurement_services(
                built.jobs,
                events,
                built.log_buffer,
                built.store,
                plans,
                KernelProofs(built.store, lambda: "kernels"),
                built.manager,
                patches,
                lambda _: None,
                lambda: "off",
                _no_model,
                no_environment,
                lambda: "a machine",
                Gpus(None),
                History(),
                fits.ceiling_of,
                fits.fit,
                PrefixLens(),
                built.folders,
                bisections.refuse_others,
                lambda: None,
            ),
            AutopsyOperations(AutopsyShelf(built.folders.autopsies), events),
            AlertOperations(events, built.store, settings, built.folders),
            EnginePatchOperations(
                patches,
                built.manager,
                plans,
                bisections.refuse_others,
            ),
            fits,
            catalogue,
            OwnPresetOperations(catalogue, consents),
            PresetVerifyOperations(built.jobs, built.store, catalogue, _listed),
            PresetVerdictOperations(
                catalogue,
                fits,
                _no_models,
                lambda: _no_server(ServerChoice.AUTO),
                no_environment,
            ),
            plans,
            started,
            RequestOperations(
                built.manager.get,
                RequestLog(events.publish, lambda _: 0, lambda _: 0),
                PrefixLens(),
                Captures(),
                lambda: "http://127.0.0.1:1",
                events,
            ),
            OnDemandOperations(Entries(built.store), on_demand, plans, consents, events, _listed_plan),
            deploy,
        )
        for later in (service for service in services if isinstance(service, Later)):
            later.functions()  # It performs what it is named for.
        app = control_app(services, events, _endpoint, TOKEN)
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app, raise_app_exceptions=False),
            base_url="http://host",
            headers={"authorization": f"Bearer {TOKEN}"},
        ) as client:
            yield Door(app, client, built, events, settings, servers, changed, quits)
        events.close()
