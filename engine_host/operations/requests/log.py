"""The requests to the endpoint: listed, shown, cancelled; and how conversations reuse their prompts."""

import asyncio
from collections.abc import Callable

from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.gateway.inspection.capture import Captures
from engine_host.gateway.inspection.inspected import inspected
from engine_host.gateway.inspection.prefix_lens import PrefixLens
from engine_host.gateway.request_log import RequestLog
from engine_host.operations.performs import performs
from engine_host.protocol.endpoint.requests import (
    CaptureState,
    Conversation,
    ConversationPage,
    ConversationQuery,
    RequestDetail,
    RequestQuery,
    StartCapture,
)
from engine_host.protocol.engines import Engine, Request, RequestPage
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.operations import endpoint as endpoint_ops


class RequestOperations:
    """The requests of all engines, and their conversations."""

    def __init__(
        self,
        find_engine: Callable[[str], Engine],
        requests: RequestLog,
        prefixes: PrefixLens,
        captures: Captures,
        base_url: Callable[[], str],
        events: EventLog,
    ) -> None:
        """`find_engine` finds by id or public name, and raises HostError(not_found).

        `base_url` is the endpoint's address from this machine, without `/v1`.
        """
        self._find_engine = find_engine
        self._requests = requests
        self._prefixes = prefixes
        self._captures = captures
        self._base_url = base_url
        self._events = events

    @performs(endpoint_ops.REQUESTS)
    def page(self, asked: RequestQuery) -> RequestPage:
        """Return the requests, newest first. Raises HostError(not_found) for an engine that there is not."""
        engine = self._find_engine(asked.engine).id if asked.engine is not None else None
        return RequestPage(seq=self._events.seq, requests=self._requests.requests(engine))

    @performs(endpoint_ops.REQUEST)
    async def get(self, request_id: str) -> RequestDetail:
        """Return one request. Raises HostError(not_found)."""
        request, turn = self._requests.request(request_id), self._prefixes.turn(request_id)
        capture = self._captures.of(request_id)
        # Texts of megabytes are searched for secrets.
        shown = await asyncio.to_thread(inspected, capture, self._base_url()) if capture else None
        return RequestDetail(request=request, turn=turn, captured=shown)

    @performs(endpoint_ops.CANCEL_REQUEST)
    def cancel(self, request_id: str) -> Request:
        """Cancel a request, whichever engine answers it. Raises HostError(not_found)."""
        return self._requests.cancel(request_id)

    @performs(endpoint_ops.CAPTURE_STATE)
    def capture_state(self) -> CaptureState:
        """Return whether texts of requests are kept, and how many."""
        return self._captures.state()

    @performs(endpoint_ops.START_CAPTURE)
    def start_capture(self, asked: StartCapture) -> CaptureState:
        """Keep texts of requests for some minutes, in memory."""
        self._captures.start(asked.minutes * 60)
        return self._captures.state()

    @performs(endpoint_ops.STOP_CAPTURE)
    def stop_capture(self) -> CaptureState:
        """Keep no more, and forget what is kept."""
        self._captures.stop()
        return self._captures.state()

    @performs(endpoint_ops.CONVERSATIONS)
    def conversations(self, asked: ConversationQuery) -> ConversationPage:
        """Return the conversations, that of the newest turn first."""
        return ConversationPage(seq=self._events.seq, conversations=self._prefixes.conversations(asked.turns))

    @performs(endpoint_ops.CONVERSATION)
    def conversation(self, conversation: str) -> Conversation:
        """Return one conversation with its turns. Raises HostError(not_found)."""
        found = self._prefixes.conversation(conversation)
        if found is None:
            raise HostError(
                Reason.NOT_FOUND,
                tr("There is no conversation {conversation}.", conversation=conversation),
                cause="The newest conversations of this run of the host are known, 100 at most.",
                fix=Fix(text="See which there are.", command="sndr requests prefix"),
            )
        return found
