"""Floods of connections: the host answers its owner meanwhile, and gives back what they took."""

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine_host.protocol.operations import table as ops
from tests.hostile.rig.host import WatchedHost, watched_host

MIB = 1 << 20
MOST_LEFT = 40 * MIB
"""Over what the host took before: the rings of requests and events fill up too."""
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[WatchedHost]:
    """A host with a FAKE engine of eight slots."""
    with watched_host(tmp_path) as running:
        running.start_engine(streams=8, waiting=1_000)
        yield running


@contextlib.contextmanager
def clients(host: WatchedHost, count: int, data: bytes) -> Iterator[None]:
    """So many clients that say this, and then nothing."""
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            one = stack.enter_context(socket.socket())
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8_192)
            one.settimeout(5)
            with contextlib.suppress(OSError):
                one.connect(("127.0.0.1", host.port))
                one.sendall(data)
        yield


def asking_for(tokens: int, size: int) -> bytes:
    """A request for an answer that nobody will read."""
    fake = {"tokens": tokens, "size": size}
    body = {"messages": [{"role": "user", "content": "x"}], "stream": True, "fake": fake}
    data = json.dumps(body).encode()
    return HEAD % len(data) + data


def test_floods_are_survived_and_their_memory_is_given_back(host: WatchedHost) -> None:
    before = host.look()
    head = b"GET / HTTP/1.1\r\nhost: localhost\r\n"
    body = b"x" * (4 * MIB)
    floods = {
        "say nothing": (1_200, b""),
        "endless headers": (800, head + b"x: " + b"a" * 60_000),
        "long bodies": (40, HEAD % (len(body) + 1) + body),
        "no HTTP": (300, b"\x16\x03\x01\x00\xff"),
        "read nothing": (60, asking_for(3_000, 2_000)),
    }
    for name, (count, data) in floods.items():
        with clients(host, count, data):
            assert host.client.call(ops.VERSION).program, name
            during = host.look()
        print(f"{name}: {during.memory // MIB} MiB, {during.descriptors} descriptors while it goes on")
    end = time.monotonic() + 30
    while (
        after := host.look()
    ).memory > before.memory + MOST_LEFT or after.descriptors > before.descriptors + 8:
        assert time.monotonic() < end, (before, after)
        time.sleep(0.5)
    print(f"before {before}, after {after}")
    assert after.tasks <= before.tasks + 2
    assert len(host.log()) < 20_000, "a flood is counted in the log, not written"


def test_clients_that_do_not_read_do_not_keep_the_others_out(host: WatchedHost) -> None:
    # An answer that fits into what is held for a client: the engine finishes, and its slots are free.
    with (
        clients(host, 8 * 4, asking_for(100, 10_000)),
        socket.create_connection(("127.0.0.1", host.port), timeout=20) as reader,
    ):
        reader.sendall(asking_for(1, 4))
        answer = b""
        while b"[DONE]" not in answer:
            part = reader.recv(65_536)
            assert part, answer
            answer += part
