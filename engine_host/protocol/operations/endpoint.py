"""The operations on the public endpoint; `table` has them with all others."""

from engine_host.protocol.endpoint.connect import EndpointModelPage
from engine_host.protocol.endpoint.keys import CreatedKey, CreateKey, KeyPage, OwnKey
from engine_host.protocol.endpoint.on_demand import (
    AddOnDemand,
    LoadOnDemand,
    OnDemandDetail,
    OnDemandModel,
    OnDemandPage,
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
from engine_host.protocol.engines import (
    Request,
    RequestPage,
)
from engine_host.protocol.errors import Reason
from engine_host.protocol.jobs import Job, JobKind
from engine_host.protocol.operations.definition import OF_PLANS, Nothing, Operation

# Each row: name, method, path, request, answer, what it does. Formatted by hand, to be read as a table.
# fmt: off

# Requests to the endpoint

REQUESTS = Operation(
    "requests.list", "GET", "/v1/requests", RequestQuery, RequestPage,
    "Live and recent requests of all engines or of one, newest first.",
    reasons=(Reason.NOT_FOUND,), command="requests list")
REQUEST = Operation(
    "requests.show", "GET", "/v1/requests/{id}", Nothing, RequestDetail,
    "One request, how it reused the prompt before it, and its texts if they were captured.",
    reasons=(Reason.NOT_FOUND,), command="requests show", seconds=30)
CANCEL_REQUEST = Operation(
    "requests.cancel", "DELETE", "/v1/requests/{id}", Nothing, Request,
    "Cancel one request; the engine's work on it ends.",
    reasons=(Reason.NOT_FOUND,), command="requests cancel")
CONVERSATIONS = Operation(
    "requests.conversations", "GET", "/v1/conversations", ConversationQuery, ConversationPage,
    "The prefix lens: how much of their prompts conversations reused, with their newest turns if asked for.",
    command="requests prefix")
CONVERSATION = Operation(
    "requests.conversation", "GET", "/v1/conversations/{id}", Nothing, Conversation,
    "One conversation with its turns: how each reused the prompt before it.",
    reasons=(Reason.NOT_FOUND,), command="requests prefix")
CAPTURE_STATE = Operation(
    "captures.show", "GET", "/v1/captures", Nothing, CaptureState,
    "The capture of requests' texts: until when, and what is held in memory.",
    command="requests capture")
START_CAPTURE = Operation(
    "captures.start", "PUT", "/v1/captures", StartCapture, CaptureState,
    "Keep the texts of requests in memory for some minutes; never on disk.",
    command="requests capture")
STOP_CAPTURE = Operation(
    "captures.stop", "DELETE", "/v1/captures", Nothing, CaptureState,
    "Keep no more texts, and forget those that are kept.",
    command="requests capture")

# Models that a request loads

ON_DEMAND = Operation(
    "on_demand.list", "GET", "/v1/on-demand", Nothing, OnDemandPage,
    "The models that a request loads, what each does now, and when it is stopped.",
    command="on-demand list")
ON_DEMAND_MODEL = Operation(
    "on_demand.show", "GET", "/v1/on-demand/{id}", Nothing, OnDemandDetail,
    "One of them, with the settings that a load may be given: name, kind, bounds, step, unit.",
    reasons=(Reason.NOT_FOUND,), command="on-demand show")
ADD_ON_DEMAND = Operation(
    "on_demand.add", "POST", "/v1/on-demand", AddOnDemand, OnDemandModel,
    "Let requests load a model or a preset, under its public name.",
    status=201, reasons=(*OF_PLANS, Reason.CONSENT_NEEDED, Reason.NOT_WRITABLE, Reason.DISK_FULL),
    command="on-demand add")
REMOVE_ON_DEMAND = Operation(
    "on_demand.remove", "DELETE", "/v1/on-demand/{id}", Nothing, OnDemandPage,
    "Let no request load it any more; an engine of it that runs goes on.",
    reasons=(Reason.NOT_FOUND,), command="on-demand remove")
LOAD_ON_DEMAND = Operation(
    "on_demand.load", "POST", "/v1/on-demand/{id}/load", LoadOnDemand, OnDemandModel,
    "Load it as a request would, with settings for this load alone.",
    status=202, reasons=(Reason.NOT_FOUND, Reason.SETTING_INVALID, Reason.CONFLICT),
    command="on-demand load")
UNLOAD_ON_DEMAND = Operation(
    "on_demand.unload", "POST", "/v1/on-demand/{id}/unload", Nothing, OnDemandModel,
    "Drain and stop it; the next request loads it again.",
    status=202, reasons=(Reason.NOT_FOUND, Reason.CONFLICT), command="on-demand unload")

# Keys of the endpoint

KEYS = Operation(
    "keys.list", "GET", "/v1/keys", Nothing, KeyPage,
    "The endpoint's keys by name, never the keys themselves; lines of `api-keys` are taken over.",
    reasons=(Reason.SETTING_INVALID, Reason.CONFLICT), command="keys list")
CREATE_KEY = Operation(
    "keys.create", "POST", "/v1/keys", CreateKey, CreatedKey,
    "Make a key; the answer is the only place where it stands.",
    status=201, reasons=(Reason.SETTING_INVALID, Reason.CONFLICT, Reason.NOT_WRITABLE, Reason.DISK_FULL),
    command="keys create")
REVOKE_KEY = Operation(
    "keys.revoke", "DELETE", "/v1/keys/{id}", Nothing, KeyPage,
    "Revoke a key by id or name; not the last one while other machines reach the endpoint.",
    reasons=(
        Reason.NOT_FOUND, Reason.SETTING_INVALID, Reason.CONFLICT, Reason.NOT_WRITABLE, Reason.DISK_FULL),
    command="keys revoke")
OWN_KEY = Operation(
    "keys.own", "GET", "/v1/keys/own", Nothing, OwnKey,
    "A key for the endpoint that ends with this run of the host; null where none is needed.")

# Routes of public model ids

_OF_ROUTES = (Reason.SETTING_INVALID, Reason.CONFLICT, Reason.NOT_WRITABLE, Reason.DISK_FULL)
ROUTES = Operation(
    "routes.list", "GET", "/v1/routes", Nothing, RoutePage,
    "The public model ids that stand for engines by other names or for a provider, with the state of each.",
    command="routes list")
ROUTE = Operation(
    "routes.show", "GET", "/v1/routes/{id}", Nothing, RouteStatus,
    "One of them.",
    reasons=(Reason.NOT_FOUND,), command="routes list")
SET_ROUTE = Operation(
    "routes.set", "PUT", "/v1/routes/{id}", SetRoute, RouteStatus,
    "Make a route, or lead it elsewhere at once; a name that nobody knows is refused but for `anyway`.",
    reasons=(Reason.NOT_FOUND, *_OF_ROUTES), command="routes set")
REMOVE_ROUTE = Operation(
    "routes.remove", "DELETE", "/v1/routes/{id}", Nothing, RoutePage,
    "Forget a route.",
    reasons=(Reason.NOT_FOUND,), command="routes remove")
CUT_OVER = Operation(
    "routes.cutover", "POST", "/v1/routes/{id}/cutover", RouteTargets, Job,
    "Lead a route elsewhere after real requests were answered there; the job's result is a `CutOver`.",
    status=202, reasons=(Reason.NOT_FOUND, Reason.SETTING_INVALID, Reason.CONFLICT),
    job=JobKind.ROUTE_CUTOVER, command="routes cutover")
ROUTE_BACK = Operation(
    "routes.back", "POST", "/v1/routes/{id}/back", Nothing, RouteStatus,
    "Lead a route where it led before its last change; a second time takes that back.",
    reasons=(Reason.NOT_FOUND, *_OF_ROUTES), command="routes back")

# Clients of the endpoint

ENDPOINT_MODELS = Operation(
    "endpoint.models", "GET", "/v1/endpoint/models", Nothing, EndpointModelPage,
    "What can be asked now, with the facts that a client has to be told.",
    command="connect")

# fmt: on

OPERATIONS = tuple(value for value in globals().values() if isinstance(value, Operation))
