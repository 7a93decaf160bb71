"""The models that the endpoint answers for, with the facts that clients have to be told."""

from collections.abc import Callable, Sequence

from engine_host.core.event_log import EventLog
from engine_host.gateway.directory import LOADED, Target
from engine_host.operations.performs import performs
from engine_host.protocol.endpoint.connect import EndedWithHost, EndpointModel, EndpointModelPage
from engine_host.protocol.operations import endpoint as endpoint_ops


class EndpointModelOperations:
    """The endpoint's own list, for who writes a client's settings."""

    def __init__(
        self,
        listed: Callable[[], Sequence[Target]],
        loadable: Callable[[], Sequence[Target]],
        events: EventLog,
        ended: Callable[[], Sequence[EndedWithHost]] = tuple,
        is_being_planned: Callable[[str], bool] = lambda _name: False,
    ) -> None:
        """`listed` returns what the endpoint's own lists show, `loadable` what a request would load.

        `ended` are the engines that ended with a host before this one; one `is_being_planned` of which it is
        not known yet whether a request would load it.
        """
        self._listed = listed
        self._loadable = loadable
        self._events = events
        self._ended = ended
        self._is_being_planned = is_being_planned

    @performs(endpoint_ops.ENDPOINT_MODELS)
    def page(self) -> EndpointModelPage:
        """Return what can be asked: conversations first, what runs before what has to be loaded.

        What leaves this machine comes last.
        """
        listed, loadable = self._listed(), self._loadable()
        names = {target.name for target in listed}
        models = [
            EndpointModel(
                id=target.name,
                context=target.context,
                context_trained=target.context_trained,
                chat=not (target.embeddings or target.reranking or target.tokens_only),
                tools=target.tools,
                images=target.images,
                provider=target.provider,
                on_demand=target.state != LOADED,
            )
            for target in (*listed, *(one for one in loadable if one.name not in names))
        ]
        models.sort(key=lambda model: (not model.chat, model.provider is not None, model.on_demand))
        there = {model.id for model in models}
        ended = tuple(
            one for one in self._ended() if one.name not in there and not self._is_being_planned(one.name)
        )
        return EndpointModelPage(seq=self._events.seq, models=tuple(models), ended=ended)
