"""A probe of what is no endpoint, or one that refuses: each step says so, and none hangs or raises."""

import asyncio
import socket
from dataclasses import replace

import pytest

from engine_host.connect.clients.table import client_named
from engine_host.connect.facts import Facts
from engine_host.connect.probe.run import probe
from engine_host.protocol.endpoint.connect import ProbeOutcome, ProbeReport
from engine_host.protocol.errors import Reason
from tests.integration.connect.strange_endpoint import answering

FACTS = Facts("http://127.0.0.1:1/v1", "m", 4096, key_needed=False)
FAILED, SKIPPED = ProbeOutcome.FAILED, ProbeOutcome.SKIPPED


def http(body: bytes, status: str = "200 OK", kind: str = "text/event-stream", more: str = "") -> bytes:
    """An answer that ends with its connection."""
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nConnection: close\r\n{more}\r\n".encode() + body


def probed(content: bytes, name: str = "opencode") -> ProbeReport:
    """The report about an endpoint that answers so."""

    async def work() -> ProbeReport:
        async with answering(content) as url:
            told: list[str] = []
            report = await probe(
                client_named(name),
                replace(FACTS, url=url),
                "sk-local",
                None,
                lambda step: told.append(step.name),
            )
            assert told == ["models", "stream", "tool call", "cancel"]
            return report

    return asyncio.run(work())


@pytest.mark.parametrize("name", ["opencode", "codex", "claude"])
@pytest.mark.parametrize("content", [
    b"nonsense\r\n\r\n", b"", http(b"<html>"), http(b"data: {}\n\n"), http(b"data: []\n\n"),
    http(b"\xff\xfe\x00", kind="application/json"), http(b"x", more="Content-Encoding: gzip\r\n"),
    http(b'data: {"error": {"message": "\x1b[0m out"}}\n\n'), http(b"no", "500 Oh"), http(b"{}", "302 Found"),
    http(b"data: " + b"x" * (2 << 20)),
])  # fmt: skip
def test_a_stranger_fails_and_nothing_raises(content: bytes, name: str) -> None:
    report = probed(content, name)
    assert not report.passed
    assert all(step.outcome in {FAILED, SKIPPED} for step in report.steps), report


def test_a_refused_key_is_said_once() -> None:
    report = probed(http(b'{"error": {"message": "The key is wrong."}}', "401 Unauthorized"))
    assert [step.outcome for step in report.steps] == [FAILED, SKIPPED, SKIPPED, SKIPPED]
    problem = report.steps[0].problem
    assert problem is not None
    assert (problem.reason, problem.message) == (Reason.UNAUTHORIZED, "The key is wrong.")


def test_nobody_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        report = asyncio.run(
            probe(client_named("claude"), replace(FACTS, url=url), "k", None, lambda step: None)
        )
    problem = report.steps[0].problem
    assert problem is not None
    assert problem.reason is Reason.HOST_UNREACHABLE
    assert [step.outcome for step in report.steps[1:]] == [SKIPPED] * 3
