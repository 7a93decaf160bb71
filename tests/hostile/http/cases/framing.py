"""Framing: where a request ends, what comes after it, and clients that leave in the middle."""

import json
import random

from tests.hostile.http.cases.case import CHAT, Case, End, Owed, head, kind, post
from tests.hostile.http.cases.heads import GOOD

_STREAMED = json.dumps(
    {"messages": [{"role": "user", "content": "x"}], "stream": True, "fake": {"tokens": 200, "pause": 0.005}}
).encode()
_HIDDEN = b"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Hidden: yes\r\n\r\n"
_CHUNKED = b"Transfer-Encoding: chunked"


def chunks(body: bytes, rng: random.Random) -> bytes:
    """A body in chunks of any size."""
    parts = []
    while body:
        size = rng.randrange(1, 60)
        parts.append(b"%x\r\n%b\r\n" % (len(body[:size]), body[:size]))
        body = body[size:]
    return b"".join([*parts, b"0\r\n\r\n"])


@kind(8)
def chunking(rng: random.Random) -> Case:
    """Chunks whose sizes and ends are wrong."""
    good = chunks(GOOD, rng)
    size = rng.choice(
        (
            b"-1",
            b"+5",
            b"0x5",
            b"5 ",
            b" 5",
            b"",
            b"g",
            b"ffffffffffffffff",
            b"10000000000000000",
            b"5;a=b",
            b"\xff",
        )
    )
    body = rng.choice(
        (
            good,
            size + b"\r\nhello\r\n0\r\n\r\n",
            b"5;" + b"e" * rng.choice((10, 5_000, 90_000)) + b"\r\nhello\r\n0\r\n\r\n",
            b"5\nhello\n0\n\n",
            b"5\r\nhelloworld\r\n0\r\n\r\n",
            b"5\r\nhel",
            good[:-5] + b"0\r\nX: " + b"t" * rng.choice((10, 90_000)) + b"\r\n\r\n",
            good[:-5] + b"0\r\n" + b"X: 1\r\n" * rng.choice((5, 500)) + b"\r\n",
            good[:-2] + b"Content-Length: 5\r\n\r\n",
            good + b"trailing",
            b"0\r\n\r\n",
            b"1\r\n{\r\n" * 2_000 + b"0\r\n\r\n",
        )
    )
    return Case((head("POST", CHAT, _CHUNKED) + body,), Owed.ANYTHING, rng.choice((End.READ, End.HALF)))


@kind(8)
def smuggling(rng: random.Random) -> Case:
    """Two ways to say where a request ends, and another request behind the nearer end."""
    te = rng.choice(
        (
            *(b"Transfer-Encoding: chunked", b"Transfer-Encoding : chunked", b"Transfer-Encoding: xchunked"),
            *(
                b"Transfer-Encoding:\tchunked",
                b"Transfer-Encoding: chunked, identity",
                b"transfer-encoding: CHUNKED",
            ),
            *(
                b"Transfer-Encoding: identity",
                b"Transfer-Encoding: chunked\r\nTransfer-Encoding: x",
                b"X: y\rTransfer-Encoding: chunked",
            ),
            *(
                b"Transfer-Encoding:\r\n chunked",
                b"Transfer-Encoding: \x0bchunked",
                b"Transfer_Encoding: chunked",
                b"Transfer-Encoding: gzip, chunked",
            ),
        )
    )
    length = rng.choice(
        (
            b"4",
            b"0",
            b"5, 5",
            b"+4",
            b"-1",
            b" 4",
            b"4 ",
            b"0x4",
            b"4\r\nContent-Length: 60",
            b"9" * 30,
            b"",
            b"4;",
        )
    )
    lines = [te, b"Content-Length: " + length]
    rng.shuffle(lines)
    if rng.random() < 0.3:
        lines.pop()
    body = rng.choice((b"0\r\n\r\n", b"1\r\nZ\r\nQ\r\n", GOOD, b""))
    return Case((head("POST", CHAT, *lines) + body + _HIDDEN,), Owed.ANYTHING)


@kind(6)
def pipelining(rng: random.Random) -> Case:
    """Several requests in one go, good ones and others."""
    known = (
        *(post(GOOD), head("GET", "/v1/models"), head("GET", "/health"), post(b"{")),
        *(
            head("OPTIONS", CHAT),
            post(GOOD, path="/nothing"),
            head("GET", "/v1/models", host=b"evil.example"),
        ),
    )
    several = [rng.choice(known) for _ in range(rng.randrange(2, 12))]
    if rng.random() < 0.3:
        several.insert(rng.randrange(len(several)), rng.randbytes(20))
    if rng.random() < 0.3:
        several = [head("GET", "/health") * 200]
    together = b"".join(several)
    return Case((together,), Owed.ANYTHING if several[0][:3] not in {b"POS", b"GET"} else Owed.ANSWER)


@kind(6)
def other_protocols(rng: random.Random) -> Case:
    """Clients that speak something else."""
    upgrade = (b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")
    spoken = rng.choice(
        (
            head("GET", CHAT, *upgrade, b"Sec-WebSocket-Version: 13"),
            head(
                "GET",
                "/v1/models",
                b"Connection: Upgrade, HTTP2-Settings",
                b"Upgrade: h2c",
                b"HTTP2-Settings: AA",
            ),
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + rng.randbytes(200),
            b"SSH-2.0-OpenSSH_9.2\r\n",
            b"EHLO evil.example\r\n",
            b"*1\r\n$4\r\nPING\r\n",
            b"\x00" * rng.randrange(1, 500),
            rng.randbytes(rng.randrange(1, 2_000)),
            head("CONNECT", "evil.example:443", host=b"evil.example:443") + b"\x16\x03\x01",
            b"GET /v1/models\r\n",
            b"\x05\x01\x00",
            b"<policy-file-request/>\x00",
        )
    )
    return Case((spoken,), Owed.ANYTHING, rng.choice((End.READ, End.HALF)))


@kind(4)
def upgrades(rng: random.Random) -> Case:
    """Good requests that would like to become something else; they are answered as they are."""
    lines = (
        b"Connection: Upgrade",
        rng.choice((b"Upgrade: websocket", b"Upgrade: h2c", b"Upgrade: TLS/1.0", b"Upgrade:")),
    )
    return Case((post(GOOD, *lines),), Owed.OK)


@kind(8)
def disconnects(rng: random.Random) -> Case:
    """Clients that leave at any byte of their request."""
    data = rng.choice((post(GOOD), post(_STREAMED), head("POST", CHAT, _CHUNKED) + chunks(GOOD, rng)))
    cut = data[: rng.randrange(len(data))] if rng.random() < 0.8 else data
    return Case((cut,), Owed.ANYTHING, rng.choice((End.CLOSE, End.RESET, End.HALF)))


@kind(4)
def leavers(rng: random.Random) -> Case:
    """Clients that leave in the middle of their answer."""
    return Case((post(_STREAMED),), Owed.ANYTHING, End.MID_ANSWER)


@kind(3)
def expectations(rng: random.Random) -> Case:
    """Clients that ask first whether they may send their body."""
    request = head("POST", CHAT, b"Expect: 100-continue", b"Content-Length: %d" % len(GOOD))
    if rng.random() < 0.3:
        return Case((request,), Owed.ANYTHING, End.HALF)
    return Case((request, GOOD), Owed.ANSWER, pause=0.02)


@kind(3)
def drips(rng: random.Random) -> Case:
    """A good request that comes in small pieces."""
    data = post(GOOD) if rng.random() < 0.5 else head("POST", CHAT, _CHUNKED) + chunks(GOOD, rng)
    size = rng.randrange(1, 40)
    parts = tuple(data[at : at + size] for at in range(0, len(data), size))
    return Case(parts, Owed.OK, pause=0.001)


@kind(3)
def lengths(rng: random.Random) -> Case:
    """Bodies that are longer or shorter than they say, or larger than anything that is read."""
    said = rng.choice((0, 1, len(GOOD) - 1, len(GOOD) + 1, 70 << 20, 2**40, 2**63))
    request = head("POST", CHAT, b"Content-Length: %d" % said) + GOOD
    return Case((request,), Owed.ANYTHING, End.HALF)
