"""Routes: which engines or which provider a public model id stands for, and moving it to others."""

from enum import StrEnum
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from engine_host.protocol.base import Command, Page, Seconds, Wire
from engine_host.protocol.language.spoken import Sentence, Spoken
from engine_host.protocol.launch.plans import Finding
from engine_host.protocol.text import Line

Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=200)]
EngineName = Annotated[Line, Field(max_length=300)]


def origin_of(url: str) -> str:
    """Return where an address leads: scheme, host and port, or the whole of what has no host."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    except ValueError:
        return url
    return f"{parts.scheme}://{parts.hostname}:{port}" if parts.hostname else url


class Provider(Command):
    """A server that speaks OpenAI's API and is no engine of this program.

    `url` is what SDKs call the base URL, most with `/v1` at its end: https, http on this machine alone, or
    `unix:/path` for a socket. The key stays where it is, in a variable of the host's environment or in a file
    with mode 0600, and is read when a request goes out. `context` is what one request may use, in tokens, and
    `slots` how many go out at a time.
    """

    url: Line = Field(max_length=500)
    model: Line = Field(max_length=300, description="its name there")
    key_variable: Variable | None = Field(None, description="the variable of the environment with the key")
    key_file: Line | None = Field(None, max_length=4096, description="the file with the key, mode 0600")
    context: int = Field(ge=256, le=1 << 30)
    slots: int = Field(8, ge=1, le=1024)
    tools: bool = True
    images: bool = False
    embeddings: bool = False

    @model_validator(mode="after")
    def _one_key(self) -> Self:
        if self.key_variable is not None and self.key_file is not None:
            raise ValueError("key_variable and key_file: a provider has one key")
        return self


class NextProvider(Command):
    """A provider that is asked where those before it cannot answer; `allow_remote` is for it alone."""

    provider: Provider
    allow_remote: bool = False


class RouteTargets(Command):
    """The engines and the providers that a route leads to.

    Each of `engines` is the public name of an engine here, a preset or a model; those that run share the
    requests. The provider is asked where no engine is named, and with `fallback` where none of them runs; in
    both cases only if `allow_remote` says that requests may leave this program, or the request says so of
    itself. `further` are asked in their order where the provider takes no connection or fails before its
    answer has begun.
    """

    engines: tuple[EngineName, ...] = Field((), max_length=16)
    provider: Provider | None = None
    allow_remote: bool = False
    fallback: bool = False
    further: tuple[NextProvider, ...] = Field((), max_length=8)

    @property
    def providers(self) -> tuple[NextProvider, ...]:
        """Return all providers in their order, each with its own permission."""
        if self.provider is None:
            return ()
        return (NextProvider(provider=self.provider, allow_remote=self.allow_remote), *self.further)

    @model_validator(mode="after")
    def _somewhere(self) -> Self:
        if not self.engines and self.provider is None:
            raise ValueError("a route leads to engines, to a provider, or to both")
        if len(set(self.engines)) < len(self.engines):
            raise ValueError("engines: one is named twice")
        if self.fallback and (self.provider is None or not self.engines):
            raise ValueError("fallback: it is for a route with engines and a provider")
        if self.further and self.provider is None:
            raise ValueError("further: they are for a route with a provider")
        places = [(one.provider.url, one.provider.model) for one in self.providers]
        if len(set(places)) < len(places):
            raise ValueError("further: one model of one provider is named twice")
        return self

    def allows(self, provider: Provider | None) -> bool:
        """Return True if requests may leave for that provider too: this was allowed for one place alone."""
        if provider is None or self.provider is None:
            return False
        return self.allow_remote and origin_of(provider.url) == origin_of(self.provider.url)


class SetRoute(RouteTargets):
    """The request to lead a route; `anyway` also to names that nobody knows here."""

    anyway: bool = False

    @classmethod
    def of(cls, targets: RouteTargets, *, anyway: bool = False) -> Self:
        """Return the request that leads a route there."""
        return cls(**{name: getattr(targets, name) for name in RouteTargets.model_fields}, anyway=anyway)

    @property
    def targets(self) -> RouteTargets:
        """Return the targets alone, as a route keeps them."""
        return RouteTargets(**{name: getattr(self, name) for name in RouteTargets.model_fields})


class Route(Wire):
    """A public model id and what it stands for; `before` is what it led to before the last change."""

    id: str
    targets: RouteTargets
    before: RouteTargets | None = None
    changed_at: Seconds


class TargetState(StrEnum):
    """The state of one target of a route; the first five can be asked.

    A provider is `answered` or `failed` by its last request, and `allowed` where nobody has asked it yet.
    """

    RUNS = "runs"
    ALLOWED = "allowed"
    ANSWERED = "answered"
    FAILED = "failed"
    ON_DEMAND = "on_demand"
    STARTING = "starting"
    NOT_RUNNING = "not_running"
    UNKNOWN = "unknown"
    NOT_ALLOWED = "not_allowed"
    KEY_MISSING = "key_missing"


class TargetStatus(Spoken):
    """A target as it is now; `command` is what would make it answer, where there is such a command.

    `answered_at` and `failed_at` are the last times in this run of the host, of a provider; `failure` is the
    last failure.
    """

    name: str
    provider: bool = False
    state: TargetState
    detail: Sentence = ""
    command: str = ""
    answered_at: Seconds | None = None
    failed_at: Seconds | None = None
    failure: str = ""


class RouteStatus(Wire):
    """A route with the state of its targets.

    `answers` says whether who is asked now answers: an engine that runs does, a provider if its last request
    was answered. It is None where that was not seen: of a provider that nobody has asked yet, and of a model
    that the next request loads.
    """

    route: Route
    answers: bool | None
    targets: tuple[TargetStatus, ...]
    findings: tuple[Finding, ...] = ()


class RoutePage(Page):
    """All routes, by id."""

    seq: int
    routes: tuple[RouteStatus, ...]


class RouteCheck(Spoken):
    """One of the requests with which a target is tried before a route leads to it."""

    target: str
    name: str
    passed: bool
    detail: Sentence
    seconds: float


class CutOver(Wire):
    """The outcome of moving a route: the checks in their order, and the route as it is now."""

    route: Route
    checks: tuple[RouteCheck, ...]
