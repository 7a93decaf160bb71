"""The prefix lens over the control API: conversations are listed lightly, and one is asked for by its id."""

import pytest
from pydantic import ValidationError

from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.gateway.inspection.capture import Captures
from engine_host.gateway.inspection.prefix_lens import PrefixLens
from engine_host.gateway.request_log import RequestLog
from engine_host.operations.requests.log import RequestOperations
from engine_host.protocol.endpoint.requests import ConversationQuery
from engine_host.protocol.engines import Engine
from engine_host.protocol.errors import Reason


def operations() -> RequestOperations:
    """Make the operations of a host that nobody has asked yet."""

    def none(name: str) -> Engine:
        raise HostError(Reason.NOT_FOUND, name)

    events = EventLog()
    log = RequestLog(events.publish, lambda _: 0, lambda _: 0)
    return RequestOperations(none, log, PrefixLens(), Captures(), lambda: "http://127.0.0.1:1", events)


@pytest.mark.parametrize("name", ["c0ffee", "", "\x1b[2J", "../requests"])
def test_a_conversation_that_is_not_there(name: str) -> None:
    with pytest.raises(HostError) as caught:
        operations().conversation(name)
    assert caught.value.problem.reason is Reason.NOT_FOUND


def test_a_list_is_never_asked_for_all_turns() -> None:
    assert operations().conversations(ConversationQuery()).conversations == ()
    with pytest.raises(ValidationError):
        ConversationQuery(turns=200)
