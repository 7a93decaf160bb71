"""The facts that a client is told: the engine's own, or a clear refusal."""

import pytest

from engine_host.connect.facts import address, checked_url, facts_of, key_from
from engine_host.core.errors import HostError
from engine_host.protocol.endpoint.connect import EndpointModel, EndpointModelPage
from engine_host.protocol.errors import Reason
from engine_host.protocol.host import Endpoint, Reach

ENDPOINT = Endpoint(
    url="http://10.0.0.2:8020/llm/v1", local_url="http://127.0.0.1:8020/llm/v1", host="0.0.0.0", port=8020,
    wanted_port=8020, reach=Reach.NETWORK, key_required=True,
)  # fmt: skip
CHAT = EndpointModel(id="chat", context=4000, chat=True, tools=False, images=True)
VECTORS = EndpointModel(id="vectors", context=512, chat=False)


def page(*models: EndpointModel) -> EndpointModelPage:
    """A list of models."""
    return EndpointModelPage(seq=1, models=models)


def test_facts_of_the_model_that_runs() -> None:
    facts = facts_of(ENDPOINT, page(CHAT, VECTORS))
    assert (facts.url, facts.root) == ("http://127.0.0.1:8020/llm/v1", "http://127.0.0.1:8020/llm")
    assert (facts.context, facts.output, facts.input) == (4000, 1000, 3000)
    assert (facts.key_needed, facts.tools, facts.images, facts.encrypted) == (True, False, True, False)
    assert facts_of(ENDPOINT, page(CHAT, VECTORS), "vectors").context == 512
    assert (
        facts_of(ENDPOINT, page(CHAT), url="https://box.example.org/llm/").url
        == "https://box.example.org/llm/v1"
    )


@pytest.mark.parametrize(
    ("said", "key"), [("", None), ("sk-a", "sk-a"), ("sk-a\r\n", "sk-a"), (" sk-a\n", "sk-a")]
)
def test_a_key_of_the_environment_is_what_a_header_carries(said: str, key: str | None) -> None:
    assert key_from({"SNDR_API_KEY": said}) == key
    assert key_from({}) is None


@pytest.mark.parametrize("said", ["sk-a\r\nX: 1", "sk-a b", "sk-\x1b[2Ja", "sk-\u0663a", "\n"])
def test_what_is_no_key_is_refused_and_not_shown(said: str) -> None:
    with pytest.raises(HostError) as caught:
        key_from({"SNDR_API_KEY": said})
    assert caught.value.reason is Reason.UNAUTHORIZED
    assert "sk-" not in caught.value.problem.sentence()


def test_nothing_is_guessed() -> None:
    for models in (page(), page(VECTORS)):
        with pytest.raises(HostError) as caught:
            facts_of(ENDPOINT, models)
        assert caught.value.reason is Reason.NO_ENGINE_RUNS
    with pytest.raises(HostError) as unknown:
        facts_of(ENDPOINT, page(CHAT), "other")
    assert "chat" in unknown.value.problem.cause
    with pytest.raises(HostError) as closed:
        address(ENDPOINT.model_copy(update={"url": None, "local_url": None}))
    assert closed.value.reason is Reason.ENGINE_NOT_READY


@pytest.mark.parametrize(
    "url",
    ["", "box", "ftp://box", "http://", "http://box:0", "http://box:x", "http://u:p@box", "http://box/?a=1",
     "http://box/#x", "http://box/a b", "http://box/'", "http://box/\x1b[0m", "http://[::1"],
)  # fmt: skip
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(HostError) as caught:
        checked_url(url)
    assert caught.value.reason is Reason.BAD_REQUEST
