"""The last answer and the last failure of each provider, as the endpoint's own requests met them.

Nobody looks at a provider unasked: that would leave the machine. Kept in memory, for this run of the host.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace

from engine_host.core.bounds.cut_text import cut_text
from engine_host.gateway.directory import Target
from engine_host.gateway.request_log import Entry
from engine_host.gateway.routing.provider import address_of
from engine_host.protocol.endpoint.routes import Provider
from engine_host.protocol.engines import RequestState
from engine_host.protocol.errors import Problem

_MOST = 1000
_LONGEST = 300
_OF_THE_REQUEST = {400, 413, 422}
"""Refusals that say something of a request and nothing of the provider."""


@dataclass(frozen=True)
class Seen:
    """The times of a provider's last answer and failure, in seconds since the epoch, and its words."""

    answered_at: float | None = None
    failed_at: float | None = None
    failure: str = ""

    @property
    def works(self) -> bool | None:
        """True if the last request was answered, False if it failed; None where nobody has asked."""
        if self.answered_at is None and self.failed_at is None:
            return None
        return (self.answered_at or 0.0) > (self.failed_at or 0.0)


class ProvidersSeen:
    """The outcome of the last requests to each provider and model."""

    def __init__(self, changed: Callable[[], None]) -> None:
        """`changed` is told when one that answered fails, or the other way round."""
        self._changed = changed
        self._seen: OrderedDict[tuple[str, str], Seen] = OrderedDict()

    def of(self, provider: Provider) -> Seen:
        """Return what was seen of a provider."""
        address = address_of(provider.url)
        return self._seen.get((address.socket or address.url or "", provider.model), Seen())

    def note(self, target: Target, entry: Entry) -> None:
        """Keep how a request to a provider ended; one that was cancelled says nothing."""
        if entry.state is RequestState.DONE:
            if _is_provider(target):
                self._keep(target, lambda seen: replace(seen, answered_at=time.time()))
        elif entry.state is RequestState.FAILED and entry.problem is not None:
            self.failed(target, entry.problem)

    def failed(self, target: Target, problem: Problem) -> None:
        """Keep a provider's failure, unless the request itself was at fault."""
        if not _is_provider(target) or problem.evidence.get("provider_status") in _OF_THE_REQUEST:
            return
        told = cut_text(" ".join(problem.message.split()), _LONGEST)
        self._keep(target, lambda seen: replace(seen, failed_at=time.time(), failure=told))

    def _keep(self, target: Target, change: Callable[[Seen], Seen]) -> None:
        key = (target.socket or target.url or "", target.known_as)
        before = self._seen.pop(key, Seen())
        now = self._seen[key] = change(before)
        if len(self._seen) > _MOST:
            self._seen.popitem(last=False)
        if now.works is not before.works:
            self._changed()


def _is_provider(target: Target) -> bool:
    """Return True for what is no engine, neither here nor on a machine that was added."""
    return target.provider is not None and target.machine is None
