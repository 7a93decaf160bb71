"""The list of models for who writes a client's settings."""

from collections.abc import Sequence

from engine_host.core.event_log import EventLog
from engine_host.gateway.directory import Target
from engine_host.operations.endpoint.models import EndpointModelOperations


def _listed() -> Sequence[Target]:
    return (
        Target("e0", "far", 1, 9, 1.0, url="http://far", provider="far"),
        Target("e1", "vectors", 1, 512, 1.0, socket="/s1", embeddings=True),
        Target("e2", "chat", 2, 4096, 2.0, socket="/s2", tools=True, images=True),
    )


def test_conversations_first_with_their_own_contexts_and_what_is_elsewhere_last() -> None:
    page = EndpointModelOperations(_listed, EventLog()).page()
    assert [(one.id, one.context, one.chat, one.tools, one.images, one.provider) for one in page.models] == [
        ("chat", 4096, True, True, True, None),
        ("far", 9, True, None, False, "far"),
        ("vectors", 512, False, None, False, None),
    ]
