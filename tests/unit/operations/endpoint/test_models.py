"""The list of models for who writes a client's settings."""

from collections.abc import Sequence

from engine_host.core.event_log import EventLog
from engine_host.gateway.directory import UNLOADED, Target
from engine_host.operations.endpoint.models import EndpointModelOperations
from engine_host.protocol.endpoint.connect import EndedWithHost


def _listed() -> Sequence[Target]:
    return (
        Target("e0", "far", 1, 9, 1.0, url="http://far", provider="far"),
        Target("e1", "vectors", 1, 512, 1.0, socket="/s1", embeddings=True),
        Target("e2", "chat", 2, 4096, 2.0, socket="/s2", tools=True, images=True),
    )


def test_conversations_first_with_their_own_contexts_and_what_is_elsewhere_last() -> None:
    page = EndpointModelOperations(_listed, tuple, EventLog()).page()
    assert [(one.id, one.context, one.chat, one.tools, one.images, one.provider) for one in page.models] == [
        ("chat", 4096, True, True, True, None),
        ("far", 9, True, None, False, "far"),
        ("vectors", 512, False, None, False, None),
    ]


def test_what_a_request_would_load_is_told_behind_what_runs() -> None:
    def loadable() -> Sequence[Target]:
        return (
            Target("", "asked", 1, 65536, 3.0, socket="/s", tools=True, state=UNLOADED),
            Target("", "chat", 1, 9, 3.0, socket="/s", state=UNLOADED),
        )

    page = EndpointModelOperations(_listed, loadable, EventLog()).page()
    assert [(one.id, one.context, one.on_demand) for one in page.models] == [
        ("chat", 4096, False), ("asked", 65536, True), ("far", 9, False), ("vectors", 512, False),
    ]  # fmt: skip


def test_what_ended_with_a_host_is_told_until_it_can_be_asked_again() -> None:
    ended = tuple(EndedWithHost(name=name, command=f"sndr run {name}") for name in ("chat", "gone"))
    page = EndpointModelOperations(_listed, tuple, EventLog(), lambda: ended).page()
    assert page.ended == ended[1:]
    # A host that has just started does not know yet whether a request would load it.
    page = EndpointModelOperations(
        _listed, tuple, EventLog(), lambda: ended, lambda name: name == "gone"
    ).page()
    assert page.ended == ()
