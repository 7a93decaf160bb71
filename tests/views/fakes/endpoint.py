"""The endpoint's part of the FAKE host of view tests: models, routes, requests, and loads on demand."""

import time
from abc import ABC, abstractmethod

from engine_host.operations.performs import performs
from engine_host.protocol.endpoint.connect import EndpointModel, EndpointModelPage
from engine_host.protocol.endpoint.on_demand import (
    AddOnDemand,
    LoadOnDemand,
    LoadSetting,
    OnDemandDetail,
    OnDemandModel,
    OnDemandPage,
    OnDemandState,
)
from engine_host.protocol.endpoint.requests import (
    CaptureState,
    Conversation,
    ConversationPage,
    ConversationQuery,
    RequestDetail,
    RequestQuery,
    StartCapture,
)
from engine_host.protocol.endpoint.routes import RoutePage, RouteStatus, RouteTargets, SetRoute
from engine_host.protocol.engines import Request as EngineRequest
from engine_host.protocol.engines import RequestPage
from engine_host.protocol.events import EventBase, RoutesChangedEvent
from engine_host.protocol.jobs import Job, JobKind, JobState
from engine_host.protocol.operations import endpoint as endpoint_ops
from tests.views.samples import host as samples
from tests.views.samples import routes as route_samples


class FakeEndpoint(ABC):
    """The endpoint's part of a FAKE host; the parts are plain attributes that a test may change."""

    def __init__(self) -> None:
        self.requests: list[EngineRequest] = []
        self.on_demand: dict[str, OnDemandModel] = {}
        self.load_settings: tuple[LoadSetting, ...] = ()
        self.details: dict[str, RequestDetail] = {}
        self.conversations: list[Conversation] = []
        self.capture = CaptureState(most_requests=200, most_bytes=64 << 20)
        self.endpoint_models: tuple[EndpointModel, ...] = ()
        self.routes: dict[str, RouteStatus] = {}

    @property
    @abstractmethod
    def seq(self) -> int:
        """The number of the newest event."""

    @abstractmethod
    def publish(self, event: EventBase) -> None:
        """Number an event and send it to whoever listens."""

    @performs(endpoint_ops.ENDPOINT_MODELS)
    def _endpoint_models(self) -> EndpointModelPage:
        return EndpointModelPage(seq=self.seq, models=self.endpoint_models)

    @performs(endpoint_ops.ROUTES)
    def _routes(self) -> RoutePage:
        return RoutePage(seq=self.seq, routes=tuple(self.routes[name] for name in sorted(self.routes)))

    @performs(endpoint_ops.SET_ROUTE)
    def _set_route(self, route_id: str, asked: SetRoute) -> RouteStatus:
        self.routes[route_id] = route_samples.route(route_id, asked.targets)
        self.publish(RoutesChangedEvent())
        return self.routes[route_id]

    @performs(endpoint_ops.REMOVE_ROUTE)
    def _remove_route(self, route_id: str) -> RoutePage:
        del self.routes[route_id]
        return self._routes()

    @performs(endpoint_ops.ROUTE_BACK)
    def _route_back(self, route_id: str) -> RouteStatus:
        return self.routes[route_id]

    @performs(endpoint_ops.CUT_OVER)
    def _cut_over(self, route_id: str, _asked: RouteTargets) -> Job:
        return samples.job(JobKind.ROUTE_CUTOVER, JobState.RUNNING, touches=f"route {route_id}")

    @performs(endpoint_ops.ON_DEMAND)
    def _on_demand(self) -> OnDemandPage:
        return OnDemandPage(seq=self.seq, models=tuple(self.on_demand.values()))

    @performs(endpoint_ops.ADD_ON_DEMAND)
    def _add_on_demand(self, _asked: AddOnDemand) -> OnDemandModel:
        return samples.on_demand()

    @performs(endpoint_ops.LOAD_ON_DEMAND)
    def _load_on_demand(self, name: str, _asked: LoadOnDemand) -> OnDemandModel:
        return self.on_demand[name].model_copy(update={"state": OnDemandState.LOADING})

    @performs(endpoint_ops.ON_DEMAND_MODEL)
    def _on_demand_model(self, name: str) -> OnDemandDetail:
        return OnDemandDetail(model=self.on_demand[name], settings=self.load_settings)

    @performs(endpoint_ops.UNLOAD_ON_DEMAND)
    def _unload_on_demand(self, name: str) -> OnDemandModel:
        return self.on_demand[name].model_copy(update={"state": OnDemandState.UNLOADING})

    @performs(endpoint_ops.REMOVE_ON_DEMAND)
    def _remove_on_demand(self, name: str) -> OnDemandPage:
        del self.on_demand[name]
        return self._on_demand()

    @performs(endpoint_ops.REQUESTS)
    def _requests(self, _asked: RequestQuery) -> RequestPage:
        return RequestPage(seq=self.seq, requests=tuple(self.requests))

    @performs(endpoint_ops.CANCEL_REQUEST)
    def _cancel_request(self, _request: str) -> EngineRequest:
        return self.requests[0]

    @performs(endpoint_ops.REQUEST)
    def _request(self, request: str) -> RequestDetail:
        return self.details[request]

    @performs(endpoint_ops.CONVERSATIONS)
    def _conversations(self, asked: ConversationQuery) -> ConversationPage:
        listed = (
            one.model_copy(update={"turns": one.turns[max(0, len(one.turns) - asked.turns) :]})
            for one in self.conversations
        )
        return ConversationPage(seq=self.seq, conversations=tuple(listed))

    @performs(endpoint_ops.CONVERSATION)
    def _conversation(self, conversation: str) -> Conversation:
        return next(one for one in self.conversations if one.id == conversation)

    @performs(endpoint_ops.CAPTURE_STATE)
    def _capture(self) -> CaptureState:
        return self.capture

    @performs(endpoint_ops.START_CAPTURE)
    def _start_capture(self, asked: StartCapture) -> CaptureState:
        self.capture = self.capture.model_copy(update={"until": time.time() + asked.minutes * 60})
        return self.capture

    @performs(endpoint_ops.STOP_CAPTURE)
    def _stop_capture(self) -> CaptureState:
        self.capture = CaptureState(most_requests=200, most_bytes=64 << 20)
        return self.capture
