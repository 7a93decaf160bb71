"""Remote hosts: other machines that this host reaches over SSH, their state, facts, and what ssh asks."""

import re
import shlex
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field

from engine_host.protocol.base import Command, Page, Seconds, Wire
from engine_host.protocol.endpoint.connect import EndpointModel
from engine_host.protocol.errors import Problem
from engine_host.protocol.language.spoken import Sentence, Spoken
from engine_host.protocol.launch.plans import Finding
from engine_host.protocol.text import Line, Text

HOST_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
THIS_MACHINE = "local"
"""The name of the host on this machine in events; no other host can have it."""
NEVER_CONNECTED = "never_connected"
"""In the evidence of a problem: nobody knows the name of a host that never was; it is not tried again."""
# What may stand in a destination is named, not what may not: ssh hands it to ProxyCommand, a shell's line.
_USER = r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,63}"
_PLACE = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,252}"
# Two colons at least: one is what a person writes before a port.
_V6 = r"(?=[0-9A-Fa-f.]*:[0-9A-Fa-f.]*:)[0-9A-Fa-f:.]{2,45}(?:%[A-Za-z0-9._-]{1,32})?"
_DESTINATION = re.compile(
    rf"(?:{_USER}@)?(?:{_PLACE}|{_V6})|ssh://(?:{_USER}@)?(?:{_PLACE}|\[{_V6}\])(?::[0-9]{{1,5}})?"
)
_ADDRESS = re.compile(rf"{_PLACE}|{_V6}")


def _name(name: str) -> str:
    if not HOST_NAME.fullmatch(name):
        raise ValueError("it is of small letters, digits and hyphens, and begins with a letter or a digit")
    if name == THIS_MACHINE:
        raise ValueError(f"{THIS_MACHINE} is this machine")
    return name


def _destination(text: str) -> str:
    if not _DESTINATION.fullmatch(text):
        port = ""
        if text.count(":") == 1:
            port = "; with a port it is ssh://HOST:PORT, or Port in your ssh configuration"
        raise ValueError(f"it is HOST or USER@HOST in letters, digits, dots and hyphens{port}")
    return text


def _folder_there(text: str) -> str:
    if not text.startswith(("/", "~/")):
        raise ValueError("it is a whole path there: it begins with / or with ~/")
    return text


def _command(text: str) -> str:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ValueError("it is no command: a quote in it is not closed, or a backslash ends it") from error
    if not words:
        raise ValueError("it is no command: there is no word in it")
    return text


def is_address(text: str) -> bool:
    """Return True for a name or an address that ssh may be told to connect to."""
    return _ADDRESS.fullmatch(text) is not None


HostName = Annotated[str, AfterValidator(_name)]
Destination = Annotated[str, Field(max_length=400), AfterValidator(_destination)]


class RemoteMode(StrEnum):
    """The way to work with a host: nothing of ours installed there, or our engine host."""

    AGENTLESS = "agentless"
    ENGINE_HOST = "engine_host"


class HostRole(StrEnum):
    """The part of a machine in a fleet: it controls and has no model, has the public names, or computes."""

    CONTROL = "control"
    INGRESS = "ingress"
    GPU_WORKER = "gpu-worker"


class RemoteHostState(StrEnum):
    """The state of the connection to a host; `asking` waits for a person, `failed` too."""

    DISCONNECTED = "disconnected"
    CONNECTING = "connecting"
    ASKING = "asking"
    CONNECTED = "connected"
    RECONNECTING = "reconnecting"
    FAILED = "failed"


class ChangeRemoteHost(Command):
    """The facts that a person keeps about a host; nothing secret is among them.

    `destination` is what `ssh` takes. `model_root` is the folder of its models. `address_command` is a
    command of this machine, without a shell, that prints the host's address: it is asked before each
    connection. `rejected` is what is not to be done there with its reason, `tasks` what is left to do: one
    a line, or with semicolons between.
    """

    destination: Destination
    mode: RemoteMode = RemoteMode.ENGINE_HOST
    model_root: Annotated[Line, Field(max_length=4096), AfterValidator(_folder_there)] | None = None
    address_command: Annotated[Line, Field(max_length=1000), AfterValidator(_command)] | None = None
    role: HostRole | None = None
    rejected: Annotated[Text, Field(max_length=10_000)] | None = None
    tasks: Annotated[Text, Field(max_length=10_000)] | None = None
    notes: Annotated[Text, Field(max_length=10_000)] | None = None


class AddRemoteHost(ChangeRemoteHost):
    """A host to keep, by the name by which it is called here."""

    name: HostName


class RemoteHost(Spoken):
    """A host and the state of its connection.

    `sentence` says the state in words; `problem` is why it failed or is being tried again, and
    `next_try_at` when. `address` is where ssh connects to, as far as it is known. `facts_at` is the time of
    the newest facts, `version` the program's version there. `control_socket` with `control_token` is the
    file of its control API, and `endpoint_socket` its endpoint: files of this machine, None unless they can
    be used now. `shell` is the command that opens a shell there over this connection. `models` are those
    that its endpoint answers for; a route may lead to one as HOST/MODEL. `engine_host_problem` is why its
    engine host does not answer though the connection stands; `findings` say what is to be said of one that
    does. `tokens_per_second` is what all of its engines wrote when that was last measured, at `tokens_at`:
    None is "not measured". `clock_ahead` are the seconds that its clock is ahead of this machine's, 0.0 where
    they agree. `last_event` says in words what happened there last, as far as it was seen here.
    """

    name: str
    destination: str
    mode: RemoteMode
    model_root: str | None = None
    address_command: str | None = None
    role: HostRole | None = None
    rejected: str | None = None
    tasks: str | None = None
    notes: str | None = None
    added_at: Seconds = 0.0
    state: RemoteHostState = RemoteHostState.DISCONNECTED
    sentence: Sentence = "Not connected."
    problem: Problem | None = None
    engine_host_problem: Problem | None = None
    next_try_at: Seconds | None = None
    connected_at: Seconds | None = None
    address: str | None = None
    facts_at: Seconds | None = None
    version: str | None = None
    protocol: str | None = None
    control_socket: str | None = None
    control_token: str | None = None
    endpoint_socket: str | None = None
    shell: tuple[str, ...] = ()
    models: tuple[EndpointModel, ...] = ()
    findings: tuple[Finding, ...] = ()
    tokens_per_second: float | None = None
    tokens_at: Seconds | None = None
    clock_ahead: float = 0.0
    last_event: str | None = None
    last_event_at: Seconds | None = None


class RemoteHostPage(Page):
    """All hosts, by name."""

    seq: int
    hosts: tuple[RemoteHost, ...]


class HostCandidate(Wire):
    """A host of the ssh configuration; `kept_as` is its name here, where it was added."""

    destination: str
    suggested_name: str
    address: str | None = None
    user: str | None = None
    kept_as: str | None = None


class HostCandidatePage(Page):
    """The hosts that the ssh configuration names; patterns are none."""

    seq: int
    source: str
    candidates: tuple[HostCandidate, ...]


class SshQuestionKind(StrEnum):
    """The kind of a question of ssh."""

    HOST_KEY = "host_key"
    PASSPHRASE = "passphrase"
    PASSWORD = "password"
    CONFIRM = "confirm"
    OTHER = "other"


class SshQuestion(Wire):
    """A question of ssh that waits for a person; `text` is ssh's own, and may hold what a server sent.

    `secret`: what is typed is not shown. `again`: the same was asked and answered before, so the answer was
    wrong. `fingerprint` and `key_type` are of the key that a server shows. `notice`: nothing is to be
    answered, as ssh waits for something else, such as a touch of a security key.
    """

    id: str
    host: str
    kind: SshQuestionKind
    text: str
    notice: bool = False
    fingerprint: str | None = None
    key_type: str | None = None
    secret: bool = True
    again: bool = False
    asked_at: Seconds


class SshQuestionPage(Page):
    """The questions that wait, oldest first."""

    seq: int
    questions: tuple[SshQuestion, ...]


class AnswerSshQuestion(Command):
    """The answer of a person: yes or no, and with a yes what ssh is told; it is kept nowhere."""

    accept: bool
    answer: str = Field("", repr=False)


class RemoteGpu(Wire):
    """A GPU there; bytes, watts and degrees Celsius, None where its driver does not tell."""

    index: int
    uuid: str
    name: str
    memory_total: int | None = None
    memory_used: int | None = None
    utilization: float | None = None
    temperature: float | None = None
    power: float | None = None
    power_limit: float | None = None
    nvlinks: int | None = None
    capability: str | None = None


class MemoryHolder(Wire):
    """A process that holds memory of a GPU; bytes."""

    gpu: str
    pid: int
    name: str
    memory: int | None = None


class RemoteDisk(Wire):
    """A file system there; bytes. `holds_models` for that of the model root, `is_root` for the root disk."""

    device: str
    mount: str
    total: int
    free: int
    is_root: bool = False
    holds_models: bool = False


class RemoteEngine(Wire):
    """A process there that looks like an engine, with the addresses that it listens on."""

    kind: str
    pid: int
    user: str
    arguments: tuple[str, ...]
    listens: tuple[str, ...] = ()


class RemoteFacts(Wire):
    """The facts of a host. `read_at` says for each part when it was read, `problems` why one was not.

    Bytes; None is "not known". `tools` are the programs of building and running that are there, with their
    paths. `containers` and `units` are lines as their programs print them. `clock_ahead` are the seconds that
    its clock was ahead of this machine's.
    """

    host: str
    read_at: dict[str, Seconds] = Field(default_factory=dict)
    problems: dict[str, str] = Field(default_factory=dict)
    system: str | None = None
    kernel: str | None = None
    machine: str | None = None
    python: str | None = None
    user: str | None = None
    home: str | None = None
    cpu: str | None = None
    cpus: int | None = None
    clock_ahead: float | None = None
    memory_total: int | None = None
    memory_free: int | None = None
    disks: tuple[RemoteDisk, ...] = ()
    driver: str | None = None
    gpus: tuple[RemoteGpu, ...] = ()
    no_gpu: Finding | None = Field(None, description="why no GPU is listed, and what to do")
    holders: tuple[MemoryHolder, ...] = ()
    engines: tuple[RemoteEngine, ...] = ()
    containers: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    tools: dict[str, str] = Field(default_factory=dict)


class KeepProfile(Command):
    """The engines whose command lines are right: each by its process, its port or its kind.

    None are those of the user that ssh logs in as; `all_engines` are everybody's.
    """

    engines: Annotated[
        tuple[Annotated[Line, Field(min_length=1, max_length=100)], ...], Field(max_length=100)
    ] = ()
    all_engines: bool = False


class HostProfile(Wire):
    """The engines of a host with the command lines that a person kept as right; `kept_at` None for none.

    `others` ran there when it was kept, and were not chosen.
    """

    host: str
    kept_at: Seconds | None = None
    engines: tuple[RemoteEngine, ...] = ()
    others: tuple[RemoteEngine, ...] = ()


class HostSheet(Wire):
    """A host on one page of Markdown, and what a look at its facts found."""

    host: str
    findings: tuple[Finding, ...]
    markdown: str


class WatchdogCheck(Wire):
    """One thing that a watchdog looked at; `ok` is None where it could not be."""

    name: str
    ok: bool | None = None
    detail: str = ""


class WatchdogEvent(Wire):
    """A change of what a watchdog says of its service."""

    at: Seconds
    state: str
    why: str = ""


class WatchdogState(Wire):
    """The newest look of a watchdog: `at` None for one that has not looked yet, `restarts` within six hours.

    `state` is one of the watchdog's words: healthy, degraded, starting, busy, failing, restarted, given_up,
    stopped, rehydrating, rehydrated; "unknown" without one. `missing` are the files of its model that are not
    there; `awaited`: they are sent again, by the machine that sent them, once it is connected.
    """

    service: str
    state: str = "unknown"
    why: str = ""
    at: Seconds | None = None
    changed_at: Seconds | None = None
    failures: int = 0
    restarts: int = 0
    checks: tuple[WatchdogCheck, ...] = ()
    missing: tuple[str, ...] = ()
    awaited: bool = False
    events: tuple[WatchdogEvent, ...] = ()


class WatchdogPage(Wire):
    """The watchdogs of a host; `read_at` is the time there was asked at."""

    host: str
    read_at: Seconds
    watchdogs: tuple[WatchdogState, ...]
