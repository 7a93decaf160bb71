"""The part of the FAKE host of view tests that works on other machines: files, services, promotions."""

from engine_host.core.errors import HostError
from engine_host.operations.performs import performs
from engine_host.protocol.engines import PinPlan, PinVllm
from engine_host.protocol.jobs import Job, JobKind, JobState
from engine_host.protocol.operations import remote_staging as staging
from engine_host.protocol.operations import remote_transfers as transfers
from engine_host.protocol.operations import services, table
from engine_host.protocol.remote.services import (
    ActOnService,
    InstallService,
    PowerPage,
    PowerPlan,
    RemoveService,
    ServiceLine,
    ServiceLogQuery,
    ServiceLogs,
    ServiceManager,
    ServicePage,
    ServicePlan,
    SetPower,
)
from engine_host.protocol.remote.staging import PromoteOnHost, PromotionPage, PromotionPlan
from engine_host.protocol.remote.transfers import FetchModel, ModelTransferPlan, SendModel, TransferWay
from engine_host.protocol.telemetry import TelemetryPage, TelemetryQuery
from tests.views.samples import host as samples


class FakeRemoteWork:
    """Work that other machines of a FAKE host are asked for; the answers are plain attributes."""

    def __init__(self) -> None:
        self.services = ServicePage(host="gpu", read_at=1.0, managers=(), services=())
        self.service_plan = ServicePlan(host="gpu", manager=ServiceManager.SYSTEMD, name="vllm")
        self.service_refused: HostError | None = None
        self.power = PowerPage(host="gpu", read_at=1.0, why="no NVIDIA GPU is there")
        self.power_plan = PowerPlan(host="gpu")
        self.pin = PinPlan(pin="automatic", now="automatic", before="0.31.0-cpu")
        self.transfer = ModelTransferPlan(
            host="gpu", way=TransferWay.SEND, model="qwen", source="/here", folder="/srv/models"
        )
        self.promotion_plan = PromotionPlan(route="coder", command="sndr host promote gpu coder qwen3")
        self.series = TelemetryPage(seq=1, step=5.0, series=())
        self.promotions = PromotionPage(seq=1, promotions=())

    @performs(services.SERVICES)
    def _services(self, _name: str) -> ServicePage:
        return self.services

    @performs(services.ACT_ON_SERVICE)
    def _act_on_service(self, name: str, _manager: str, _service: str, _asked: ActOnService) -> Job:
        return samples.job(JobKind.SERVICE_ACTION, JobState.RUNNING, touches=f"services of {name}")

    @performs(services.PLAN_SERVICE)
    def _plan_service(self, _name: str, asked: InstallService) -> ServicePlan:
        if self.service_refused is not None and asked.consent is None:
            raise self.service_refused
        return self.service_plan

    @performs(services.INSTALL_SERVICE)
    def _install_service(self, name: str, _asked: InstallService) -> Job:
        return samples.job(JobKind.SERVICE_INSTALL, JobState.RUNNING, touches=f"services of {name}")

    @performs(services.POWER)
    def _power(self, _name: str) -> PowerPage:
        return self.power

    @performs(services.PLAN_POWER)
    def _plan_power(self, _name: str, _asked: SetPower) -> PowerPlan:
        return self.power_plan

    @performs(services.SET_POWER)
    def _set_power(self, name: str, _asked: SetPower) -> Job:
        return samples.job(JobKind.GPU_POWER, JobState.RUNNING, touches=f"power of {name}")

    @performs(table.PLAN_PIN)
    def _plan_pin(self, asked: PinVllm) -> PinPlan:
        if asked.version is None and not asked.back:
            return self.pin
        new = str(asked.version or self.pin.before)
        return self.pin.model_copy(update={"pin": new, "changes": (f"~ starts use {new}",)})

    @performs(table.PIN)
    def _pin(self, asked: PinVllm) -> Job:
        touches = f"vllm {asked.version or self.pin.before}"
        return samples.job(JobKind.ENGINE_PIN, JobState.RUNNING, touches=touches)

    @performs(services.PLAN_SERVICE_REMOVAL)
    def _plan_removal(self, _name: str, _manager: str, _service: str, _asked: RemoveService) -> ServicePlan:
        return self.service_plan

    @performs(services.REMOVE_SERVICE)
    def _remove_service(self, name: str, _manager: str, _service: str, _asked: RemoveService) -> Job:
        return samples.job(JobKind.SERVICE_REMOVE, JobState.RUNNING, touches=f"services of {name}")

    @performs(services.SERVICE_LOGS)
    def _service_logs(self, name: str, manager: str, service: str, _asked: ServiceLogQuery) -> ServiceLogs:
        lines = (ServiceLine(text="ready \x1b[2J"),)
        return ServiceLogs(host=name, manager=ServiceManager(manager), name=service, lines=lines)

    @performs(transfers.PLAN_SEND)
    def _plan_send(self, _name: str, _asked: SendModel) -> ModelTransferPlan:
        return self.transfer

    @performs(transfers.SEND_MODEL)
    def _send_model(self, name: str, _asked: SendModel) -> Job:
        return samples.job(JobKind.HOST_SEND, JobState.RUNNING, touches=f"files of {name}")

    @performs(transfers.PLAN_FETCH)
    def _plan_fetch(self, _name: str, _asked: FetchModel) -> ModelTransferPlan:
        return self.transfer.model_copy(update={"way": TransferWay.FETCH})

    @performs(transfers.HOST_TELEMETRY)
    def _host_telemetry(self, _name: str, _asked: TelemetryQuery) -> TelemetryPage:
        return self.series

    @performs(staging.PROMOTIONS)
    def _promotions(self, _name: str) -> PromotionPage:
        return self.promotions

    @performs(staging.PLAN_PROMOTION)
    def _plan_promotion(self, _name: str, _asked: PromoteOnHost) -> PromotionPlan:
        return self.promotion_plan

    @performs(staging.PROMOTE)
    def _promote(self, name: str, asked: PromoteOnHost) -> Job:
        touched = f"route {asked.route}"
        return samples.job(JobKind.ROUTE_PROMOTE, JobState.RUNNING, touches=touched, machines=(name,))

    @performs(staging.PLAN_ROLLBACK)
    def _plan_rollback(self, _route_id: str) -> PromotionPlan:
        return self.promotion_plan

    @performs(staging.ROLLBACK)
    def _rollback(self, route_id: str) -> Job:
        touched = f"route {route_id}"
        return samples.job(JobKind.ROUTE_ROLLBACK, JobState.RUNNING, touches=touched, machines=("gpu",))
