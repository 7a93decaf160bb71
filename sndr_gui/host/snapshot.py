"""Everything that a window knows of a host, read at once."""

from dataclasses import dataclass

from engine_host.protocol.endpoint.on_demand import OnDemandModel
from engine_host.protocol.engines import EnginePage, Request, ServerPage
from engine_host.protocol.events import (
    EngineRequestEvent,
    EngineStateEvent,
    HostStateEvent,
    JobDoneEvent,
    JobStepEvent,
    OnDemandEvent,
    RemoteHostEvent,
    SshQuestionEvent,
)
from engine_host.protocol.host import HostInfo
from engine_host.protocol.jobs import JobPage
from engine_host.protocol.models import ModelPage
from engine_host.protocol.remote.hosts import RemoteHost, SshQuestion
from engine_host.protocol.settings import SettingPage

PART_CHANGES = (
    EngineStateEvent
    | EngineRequestEvent
    | JobStepEvent
    | JobDoneEvent
    | HostStateEvent
    | OnDemandEvent
    | RemoteHostEvent
    | SshQuestionEvent
)
"""Events that tell anew of a part that a snapshot holds."""


@dataclass(frozen=True)
class Snapshot:
    """Everything read at once after connecting; `seq` is the number that the events go on from."""

    run_id: str
    seq: int
    host: HostInfo
    engines: EnginePage
    jobs: JobPage
    models: ModelPage
    servers: ServerPage | None
    settings: SettingPage
    requests: tuple[Request, ...] = ()
    on_demand: tuple[OnDemandModel, ...] = ()
    remote_hosts: tuple[RemoteHost, ...] = ()
    questions: tuple[SshQuestion, ...] = ()
