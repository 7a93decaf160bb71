"""The requests to the endpoint: listed, shown, cancelled; and how conversations reuse their prompts."""

from collections.abc import Callable

from engine_host.core.event_log import EventLog
from engine_host.gateway.inspection.prefix_lens import PrefixLens
from engine_host.gateway.request_log import RequestLog
from engine_host.operations.performs import performs
from engine_host.protocol.engines import Engine, Request, RequestPage
from engine_host.protocol.operations import table as ops
from engine_host.protocol.requests import ConversationPage, RequestDetail, RequestQuery


class RequestOperations:
    """The requests of all engines, and their conversations."""

    def __init__(
        self,
        find_engine: Callable[[str], Engine],
        requests: RequestLog,
        prefixes: PrefixLens,
        events: EventLog,
    ) -> None:
        """`find_engine` finds by id or public name, and raises HostError(not_found)."""
        self._find_engine = find_engine
        self._requests = requests
        self._prefixes = prefixes
        self._events = events

    @performs(ops.REQUESTS)
    def page(self, asked: RequestQuery) -> RequestPage:
        """Return the requests, newest first. Raises HostError(not_found) for an engine that there is not."""
        engine = self._find_engine(asked.engine).id if asked.engine is not None else None
        return RequestPage(seq=self._events.seq, requests=self._requests.requests(engine))

    @performs(ops.REQUEST)
    def get(self, request_id: str) -> RequestDetail:
        """Return one request. Raises HostError(not_found)."""
        return RequestDetail(request=self._requests.request(request_id), turn=self._prefixes.turn(request_id))

    @performs(ops.CANCEL_REQUEST)
    def cancel(self, request_id: str) -> Request:
        """Cancel a request, whichever engine answers it. Raises HostError(not_found)."""
        return self._requests.cancel(request_id)

    @performs(ops.CONVERSATIONS)
    def conversations(self) -> ConversationPage:
        """Return the conversations, that of the newest turn first."""
        return ConversationPage(seq=self._events.seq, conversations=self._prefixes.conversations())
