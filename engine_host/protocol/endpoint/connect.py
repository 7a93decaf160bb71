"""Clients of the endpoint: what they are to be set to, what stands in their files, and whether it works."""

from enum import StrEnum

from engine_host.protocol.base import Seconds, Wire
from engine_host.protocol.errors import Problem
from engine_host.protocol.language.spoken import Sentence, Spoken


class EndpointModel(Wire):
    """A model that the endpoint answers for; `context` is what one request may use, in tokens.

    `tools` is None where the host does not know it; `provider` is the host that answers instead of an engine.
    `on_demand`: it does not run, and the next request loads it. `context_trained` is the longest context of
    the model itself, None where it is not known.
    """

    id: str
    context: int
    context_trained: int | None = None
    chat: bool
    tools: bool | None = None
    images: bool = False
    provider: str | None = None
    on_demand: bool = False


class EndedWithHost(Wire):
    """An engine that served when its engine host ended, and ended with it; `command` is its start.

    `at` is None where nobody saw it: the machine went down, or both were killed.
    """

    name: str
    command: str
    at: Seconds | None = None


class EndpointModelPage(Wire):
    """The models that can be asked, those that hold a conversation first, and of them those that run.

    `ended` are those that ran until the engine host ended and cannot be asked since, by name.
    """

    seq: int
    models: tuple[EndpointModel, ...]
    ended: tuple[EndedWithHost, ...] = ()


class ClientKind(StrEnum):
    """The kind of a client."""

    EDITOR = "editor"
    AGENT = "agent"
    WEB = "web"
    PROGRAM = "program"


class ConnectionState(StrEnum):
    """The state of a client's own settings.

    `outdated`: the address is ours, but the model, the context or another value is not what it would be
    now. `by_hand`: the client keeps them where no other program should write.
    """

    CONNECTED = "connected"
    OUTDATED = "outdated"
    OTHER = "other"
    NOT_SET_UP = "not_set_up"
    UNREADABLE = "unreadable"
    BY_HAND = "by_hand"
    IMPOSSIBLE = "impossible"


class ClientEntry(Wire):
    """A client, as this machine has it; `found` holds what shows that it is here: programs and folders.

    `files` are those that `--write` would change, `undo` says that such a change can be taken back.
    """

    name: str
    title: str
    kind: ClientKind
    found: tuple[str, ...] = ()
    state: ConnectionState
    address: str | None = None
    files: tuple[str, ...] = ()
    writable: bool = False
    undo: bool = False
    problem: Problem | None = None


class ClientList(Wire):
    """All known clients, found ones first; `url` is the endpoint's address, None while no host runs."""

    url: str | None = None
    model: str | None = None
    clients: tuple[ClientEntry, ...]


class SettingsText(Wire):
    """Settings to be put at a place by a person, or by `--write` into a file."""

    place: str
    language: str
    text: str


class ClientField(Wire):
    """One field of a client's own form."""

    caption: str
    value: str


class ClientSettings(Wire):
    """All that a client has to be told; `warnings` say what will not work as hoped for."""

    client: str
    title: str
    url: str
    model: str
    context: int
    max_output: int
    key_needed: bool
    texts: tuple[SettingsText, ...] = ()
    fields: tuple[ClientField, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class FileDifference(Wire):
    """One file of a client as it would change; `backup` is the copy of what was there, if anything was.

    `removed`: undoing took it away, as there was none before.
    """

    path: str
    is_new: bool
    removed: bool = False
    difference: str
    backup: str | None = None


class ClientChange(Wire):
    """A change of a client's files, proposed or done; without files there is nothing to change."""

    client: str
    title: str
    done: bool
    files: tuple[FileDifference, ...] = ()


class WrittenFile(Wire):
    """A file that was written for a client; the hashes are SHA-256, None for a file that was not there."""

    path: str
    backup: str | None
    before: str | None
    after: str
    mode: int
    made_folders: tuple[str, ...] = ()


class WrittenFiles(Wire):
    """The record of what was written for a client, which undoing reads."""

    client: str
    files: tuple[WrittenFile, ...]


class ProbeOutcome(StrEnum):
    """The outcome of one step of a probe; `unclear` is what a small model may well do."""

    PASSED = "passed"
    FAILED = "failed"
    UNCLEAR = "unclear"
    SKIPPED = "skipped"


class ProbeStep(Spoken):
    """One thing that was tried; `seconds` is how long it took, None where it was not measured."""

    name: Sentence
    outcome: ProbeOutcome
    detail: Sentence
    seconds: float | None = None
    problem: Problem | None = None


class ProbeReport(Wire):
    """A probe of the endpoint in the words of one client."""

    client: str
    dialect: str
    url: str
    model: str
    steps: tuple[ProbeStep, ...]
    warnings: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Tell whether nothing failed."""
        return all(step.outcome is not ProbeOutcome.FAILED for step in self.steps)

    @property
    def whole(self) -> bool:
        """Tell whether all was tried and worked, and nothing stands in a client's way besides."""
        return not self.warnings and all(step.outcome is ProbeOutcome.PASSED for step in self.steps)
