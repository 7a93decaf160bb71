"""TLS from two files: it answers, and wrong files are refused with a sentence that names them."""

import asyncio
import socket
from pathlib import Path

import httpx
import pytest

from engine_host.core.errors import HostError
from engine_host.core.settings import EndpointSettings
from engine_host.daemon.http_protocol import ConnectionLimits, bounded
from engine_host.daemon.http_server import HttpServer
from engine_host.gateway import Gateway, bind_endpoint
from engine_host.gateway.access.tls import tls_context
from engine_host.operations.setting_checks import check_tls, doubts
from engine_host.protocol.errors import Reason
from tests.certificates import CERTIFICATE, KEY, OTHER_KEY, trusting, write


class Nobody:
    """A directory without engines."""

    def targets(self) -> tuple[()]:
        """Nothing."""
        return ()

    def starting(self) -> tuple[()]:
        """Nothing."""
        return ()


def test_the_endpoint_answers_over_tls_and_over_nothing_else(home: Path) -> None:
    async def go() -> None:
        gateway = Gateway(Nobody(), lambda event: None)
        bound = bind_endpoint("127.0.0.1", 0)
        protocol = bounded(ConnectionLimits(head=0.5))
        tls = tls_context(*write(home))
        server = HttpServer(gateway.app, bound.socket, name="endpoint", protocol=protocol, tls=tls)
        await server.started()
        try:
            async with httpx.AsyncClient(verify=trusting(), trust_env=False) as client:
                answer = await client.get(f"https://127.0.0.1:{bound.port}/health")
                assert answer.status_code == 200
                large = await client.get(
                    f"https://127.0.0.1:{bound.port}/health", headers={"x": "y" * 70_000}
                )
                assert large.status_code == 431
            async with httpx.AsyncClient(trust_env=False) as stranger:
                with pytest.raises(httpx.ConnectError):
                    await stranger.get(f"https://127.0.0.1:{bound.port}/health")
                with pytest.raises(httpx.HTTPError):
                    await stranger.get(f"http://127.0.0.1:{bound.port}/health")
            with socket.create_connection(("127.0.0.1", bound.port)) as noise:
                noise.sendall(b"\x16\x03\x01" + b"\xff" * 500)
                await asyncio.sleep(0.05)
            async with httpx.AsyncClient(verify=trusting(), trust_env=False) as client:
                assert (await client.get(f"https://127.0.0.1:{bound.port}/health")).is_success
        finally:
            await gateway.aclose()
            await server.close()

    asyncio.run(go())


def test_one_file_alone_is_no_tls_yet(home: Path) -> None:
    certificate, key = write(home)
    assert tls_context(certificate, None) is None
    assert tls_context(None, key) is None
    assert tls_context(None, None) is None


@pytest.mark.parametrize(
    ("certificate", "key", "says"),
    [
        ("", KEY, "holds no certificate"),
        (KEY, KEY, "holds no certificate"),
        (CERTIFICATE, CERTIFICATE, "holds no private key"),
        (CERTIFICATE, OTHER_KEY, "does not belong to the certificate"),
        (CERTIFICATE, KEY.replace("BEGIN PRIVATE", "BEGIN ENCRYPTED PRIVATE"), "has a password"),
        (CERTIFICATE[:200] + CERTIFICATE[260:], KEY, "does not work"),
        (CERTIFICATE, KEY[:60] + KEY[100:], "does not work"),
        (CERTIFICATE.replace("MII", "\0II"), KEY, "does not work"),
    ],
)
def test_wrong_files_are_named(home: Path, certificate: str, key: str, says: str) -> None:
    with pytest.raises(HostError) as refused:
        tls_context(*write(home, certificate, key))
    assert refused.value.reason is Reason.SETTING_INVALID
    assert says in refused.value.problem.message
    assert str(home) in refused.value.problem.message
    assert refused.value.problem.fix is not None
    assert refused.value.problem.fix.command


def test_a_key_that_everybody_can_read_is_refused(home: Path) -> None:
    certificate, key = write(home)
    Path(key).chmod(0o644)
    with pytest.raises(HostError, match="read by everybody") as refused:
        tls_context(certificate, key)
    assert refused.value.problem.fix is not None
    assert refused.value.problem.fix.command == f"chmod o= {key}"
    Path(key).chmod(0o640)
    assert tls_context(certificate, key) is not None, "a group is how systems hand keys to their servers"


@pytest.mark.parametrize(
    "path", ["/none/here.pem", "relative.pem", "/", "/dev/null", "/\0", "~nobody-is-this/x"]
)
def test_paths_that_lead_nowhere(home: Path, path: str) -> None:
    _, key = write(home)
    with pytest.raises(HostError) as refused:
        tls_context(path, key)
    assert refused.value.reason is Reason.SETTING_INVALID


def test_bytes_are_no_certificate(home: Path) -> None:
    certificate, key = write(home)
    Path(certificate).write_bytes(b"\xff\xfe" * 100)
    with pytest.raises(HostError, match="PEM"):
        tls_context(certificate, key)


def test_a_setting_is_checked_with_the_other_one(home: Path) -> None:
    certificate, key = write(home, key=OTHER_KEY)
    now = EndpointSettings(tls_certificate=certificate)
    with pytest.raises(HostError, match="Nothing was changed"):
        check_tls({"endpoint.tls_key": key}, now)
    check_tls({"endpoint.tls_key": None}, now)
    (doubt,) = doubts({"endpoint.tls_certificate": certificate}, home, now)
    assert "endpoint.tls_key" in doubt.message
