"""Requests to the hub: to whom the token goes, and what a message never tells."""

import httpx
import pytest

from engine_host.core.errors import HostError
from engine_host.library.hub.requests import ENDPOINT, HubRequests
from engine_host.protocol.errors import Reason
from tests.unit.asynchronous import run


async def sent_with(environment: dict[str, str]) -> str | None:
    async with HubRequests(environment).asking("nothing was read") as client:
        token: str | None = client.headers.get("Authorization")
        return token


def refused(environment: dict[str, str]) -> HostError:
    with pytest.raises(HostError) as caught:
        run(sent_with(environment))
    return caught.value


@pytest.mark.parametrize(
    ("endpoint", "sent"),
    [
        ("", True),
        ("https://hub.example.org", True),
        ("http://localhost:8080", True),
        ("http://127.0.0.1:8080/hub", True),
        ("http://[::1]:8080", True),
        ("http://hub.example.org", False),
        ("http://127.0.0.1.example.org", False),
        ("http://localhost.example.org", False),
        ("HTTP://hub.example.org", False),
        ("http://10.0.0.7", False),
        ("http://[", False),
    ],
)
def test_the_token_goes_out_encrypted_or_stays_on_this_machine(endpoint: str, sent: bool) -> None:
    environment = {"HF_ENDPOINT": endpoint, "HF_TOKEN": "hf_x"}
    assert HubRequests(environment).has_token is sent
    assert run(sent_with(environment)) == ("Bearer hf_x" if sent else None)


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://me:s3cret@hub.example.org/",
        "https://s3cret@hub.example.org",
        "https://me:s3/c#r?s3cret@hub.example.org",
        "//me:s3cret@hub.example.org",
        "me:s3cret@hub.example.org",
    ],
)
def test_a_password_in_the_endpoint_is_refused_and_not_shown(endpoint: str) -> None:
    requests = HubRequests({"HF_ENDPOINT": endpoint})
    assert requests.endpoint.endswith("hub.example.org")
    assert "s3" not in requests.endpoint
    error = refused({"HF_ENDPOINT": endpoint})
    assert (error.reason, error.problem.message) == (Reason.DOWNLOAD_FAILED, "HF_ENDPOINT holds a password.")
    assert error.problem.fix is not None
    assert "s3" not in error.problem.model_dump_json()


def test_an_address_that_is_not_encrypted_is_told_without_its_signature() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(302, headers={"Location": "http://cdn.example.org/p4th?sig=s3cret"})

    async def work() -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
            requests = HubRequests({})
            await requests.get(client, f"{ENDPOINT}/org/name", "org/name")

    with pytest.raises(httpx.UnsupportedProtocol) as caught:
        run(work())
    assert "http://cdn.example.org," in str(caught.value)
    assert "p4th" not in str(caught.value)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("name", ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"])
def test_each_variable_that_means_offline_is_obeyed_and_named(name: str) -> None:
    assert HubRequests({name: "1"}).offline
    assert not HubRequests({name: "0"}).offline
    error = refused({name: "1"})
    assert error.reason is Reason.OFFLINE
    assert f"{name} is set" in error.problem.message
