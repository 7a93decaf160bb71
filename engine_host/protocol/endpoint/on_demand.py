"""Models that a request loads: with what start, how long each stays, and what it does now."""

from enum import StrEnum
from typing import Any

from pydantic import Field

from engine_host.protocol.base import Command, Page, Seconds, Wire
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.errors import Problem
from engine_host.protocol.launch.plans import LaunchRequest

DEFAULT_KEEP_ALIVE = 600.0
"""Seconds that a model stays after its last request where nobody says more."""
NEVER = -1.0
"""The keep-alive of a model that stays."""


class OnDemandState(StrEnum):
    """The state of a model that is loaded on demand."""

    LOADABLE = "loadable"
    LOADING = "loading"
    LOADED = "loaded"
    UNLOADING = "unloading"


class OnDemandChange(StrEnum):
    """The reason of a change: what was done, or why a model was loaded or ended."""

    ADDED = "added"
    REMOVED = "removed"
    REQUESTED = "requested"
    LOADED = "loaded"
    USED = "used"
    FAILED = "failed"
    NOT_WANTED = "not_wanted"
    IDLE = "idle"
    EVICTED = "evicted"
    ASKED = "asked"
    ENDED = "ended"


class AddOnDemand(Command):
    """A model or preset that requests may load from now on, by its public name; the same name is replaced.

    `keep_alive` are seconds without a request after which it is stopped: 0 at once, -1 never. A pinned one is
    stopped neither for that nor for room. One `at_start` is also loaded when the host starts. `consent` is
    the digest of what its preset asks for.
    """

    launch: LaunchRequest
    keep_alive: float = Field(DEFAULT_KEEP_ALIVE, ge=NEVER, le=31_536_000)
    pinned: bool = False
    at_start: bool = False
    consent: str | None = None


class LoadOnDemand(Command):
    """Load one now: with settings for this load alone, and its own keep-alive in seconds."""

    overrides: Overrides = Overrides.model_construct()
    keep_alive: float | None = Field(None, ge=NEVER, le=31_536_000)


class LoadSetting(Wire):
    """One setting that a load may be given: what a form needs to ask for it, and the value that holds now.

    `kind` is whole, decimal, choice, text or words; `minimum`, `maximum` and `step` are of numbers.
    """

    name: str
    caption: str
    help: str
    kind: str
    unit: str = ""
    minimum: float | None = None
    maximum: float | None = None
    step: float | None = None
    choices: tuple[Any, ...] = ()
    value: Any = None
    given: bool = Field(False, description="the model's own entry sets it")


class OnDemandModel(Wire):
    """One model that is loaded on demand, and how it is now; times in seconds."""

    name: str
    launch: LaunchRequest
    command: str = Field(description="the command line that adds it")
    state: OnDemandState
    keep_alive: float = Field(description="what holds now; a client may have asked for another one")
    pinned: bool = False
    at_start: bool = Field(False, description="it is also loaded when the host starts")
    engine: str | None = Field(None, description="the engine that answers under its name")
    by_hand: bool = Field(False, description="that engine was started by a person, and is left alone")
    waiting: int = Field(0, description="requests that wait for its load")
    last_used: Seconds | None = None
    unloads_at: Seconds | None = Field(None, description="when it is stopped if no request comes")
    problem: Problem | None = Field(None, description="why it cannot be loaded, or its last load failed")


class OnDemandDetail(Wire):
    """One such model with the settings that a load of it may be given."""

    model: OnDemandModel
    settings: tuple[LoadSetting, ...]


class OnDemandPage(Page):
    """Every model that is loaded on demand, by name."""

    seq: int
    models: tuple[OnDemandModel, ...]
