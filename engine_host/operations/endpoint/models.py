"""The models that the endpoint answers for, with the facts that clients have to be told."""

from collections.abc import Callable, Sequence

from engine_host.core.event_log import EventLog
from engine_host.gateway.directory import Target
from engine_host.operations.performs import performs
from engine_host.protocol.connect import EndpointModel, EndpointModelPage
from engine_host.protocol.operations import table as ops


class EndpointModelOperations:
    """The endpoint's own list, for who writes a client's settings."""

    def __init__(self, listed: Callable[[], Sequence[Target]], events: EventLog) -> None:
        """`listed` returns what the endpoint's own lists show."""
        self._listed = listed
        self._events = events

    @performs(ops.ENDPOINT_MODELS)
    def page(self) -> EndpointModelPage:
        """Return what can be asked now, conversations first, and what leaves this machine last."""
        models = [
            EndpointModel(
                id=target.name,
                context=target.context,
                chat=not (target.embeddings or target.reranking or target.tokens_only),
                tools=target.tools,
                images=target.images,
                provider=target.provider,
            )
            for target in self._listed()
        ]
        models.sort(key=lambda model: (not model.chat, model.provider is not None))
        return EndpointModelPage(seq=self._events.seq, models=tuple(models))
