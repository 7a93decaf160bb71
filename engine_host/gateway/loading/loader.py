"""The loader as the endpoint knows it: models that a request loads, and loads that requests wait for."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from engine_host.core.errors import HostError
from engine_host.gateway.directory import Target
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr


class Load(Protocol):
    """One load of a model, which any number of requests wait for."""

    @property
    def done(self) -> "asyncio.Future[None]":
        """Done once the model answers; raises HostError when it will not."""

    @property
    def overrides(self) -> Overrides | None:
        """The settings for this load alone; None where the model's own hold."""


class Loader(Protocol):
    """The models that a request loads; all calls are cheap and never block."""

    def loadable(self) -> Sequence[Target]:
        """The models that do not answer now, each with the state that it has."""

    def is_known(self, name: str) -> bool:
        """Return True for a model that requests may load, whatever its state."""

    def join(self, name: str, keep_alive: float | None = None, overrides: Overrides | None = None) -> Load:
        """Wait for a model, and begin its load where nobody did; `keep_alive` (seconds) holds from now."""

    def leave(self, load: Load, *, goes_on: bool = False) -> None:
        """Wait no longer; a load that has not begun ends with the last, unless it is to go on."""

    def touch(self, engine: str, keep_alive: float | None = None) -> None:
        """Note that an engine is used now."""

    def unload(self, name: str) -> None:
        """Drain and stop a model that a request loaded. Raises HostError(conflict) for one that stays."""


class NothingToLoad:
    """The loader of an endpoint that loads nothing."""

    def loadable(self) -> Sequence[Target]:
        """No model."""
        return ()

    def is_known(self, name: str) -> bool:
        """No name."""
        return False

    def join(self, name: str, keep_alive: float | None = None, overrides: Overrides | None = None) -> Load:
        """Raise HostError(not_found)."""
        raise HostError(
            Reason.NOT_FOUND,
            tr("{name} is not loaded on demand.", name=name),
            cause="Nobody allowed requests to load it, or not any longer.",
            fix="`sndr on-demand list` names them.",
        )

    def leave(self, load: Load, *, goes_on: bool = False) -> None:
        """Do nothing."""

    def touch(self, engine: str, keep_alive: float | None = None) -> None:
        """Do nothing."""

    def unload(self, name: str) -> None:
        """Raise HostError(not_found)."""
        raise HostError(
            Reason.NOT_FOUND,
            tr("{name} is not loaded on demand.", name=name),
            cause="Nobody allowed requests to load it, or not any longer.",
            fix="`sndr on-demand list` names them.",
        )
