"""Heads: addresses, methods, hosts, origins and headers that nobody should send."""

import json
import random

from tests.hostile.http.cases.bodies import ROUTES
from tests.hostile.http.cases.case import CHAT, Case, Owed, head, kind, post

GOOD = json.dumps(ROUTES[CHAT]).encode()
_HOSTS = (
    *(
        b"evil.example",
        b"localhost.evil.example",
        b"127.0.0.1.nip.io",
        b"127.0.0.1@evil.example",
        b"evil.example:80",
    ),
    *(
        b"",
        b" ",
        b"localhost, evil.example",
        b"[::1",
        b"[::1]]",
        b"[evil]",
        b"::1",
        b"0",
        b"0.0.0.0",
        b"127.1",
    ),
    *(b"LOCALHOST", b"localhost.", b"localhost:", b"localhost:99999", b"localhost:abc", b"127.0.0.1:80:80"),
    *(
        "lоcalhost".encode(),
        b"\xff\xfe",
        b"a" * 3_000,
        b"localhost\x00.evil",
        b"localhost\tevil",
        b"*",
        b"null",
    ),
    *(
        b"2130706433",
        b"0x7f000001",
        b"017700000001",
        b"xn--lcalhost-tyf",
        b"localhost/evil",
        b"localhost#",
        b"%6c",
    ),
)
_ORIGINS = (
    *(
        b"null",
        b"",
        b"https://evil.example",
        b"http://localhost.evil.example",
        b"file://",
        b"http://127.0.0.1@evil",
    ),
    *(
        b"http://localhost:1",
        b"https://127.0.0.1",
        b"chrome-extension://abc",
        b"://",
        b"http://",
        b"evil",
        b"\xff",
    ),
    *(b"http://[::1]", b"http://localhost\x00", b"http://" + b"a" * 2_000, b"http://evil http://localhost"),
)
_PATHS = (
    *(
        "/",
        "//",
        "/v1",
        "/v1/",
        "/v1//models",
        "/v1/models/",
        "/v1/models/x",
        "/v1/../v1/models",
        "/v1/models/../..",
    ),
    *(
        "/v1/chat/completions/",
        "/V1/CHAT/COMPLETIONS",
        "/chat/completions",
        "/v1/chat/completions?x=1",
        "/health?a",
    ),
    *(
        "/%2e%2e/%2e%2e/etc/passwd",
        "/v1/%00",
        "/v1/models/%ff%fe",
        "/v1/models/%",
        "/v1/models/%zz",
        "/\\..\\x",
    ),
    *(
        "/v1/models/" + "a" * 3_000,
        "/v1/models/%0d%0aX: 1",
        "/v1/models/%e2%80%ae",
        "/v1;x",
        "/v1#x",
        "/*",
        "*",
    ),
    *(
        "http://evil.example/v1/models",
        "http://127.0.0.1/v1/models",
        "https://",
        "//evil/v1/models",
        "v1/models",
    ),
    *(
        "/v1/models?" + "a=b&" * 500,
        "/v1/models/{x}",
        "/v1/models/$(id)",
        "/slots",
        "/props",
        "/metrics",
        "/v1/host",
    ),
    *(
        "/openai/v1/models",
        "/v1/engines",
        "/apply-template",
        "/tokenize",
        "/infill",
        "/completion",
        "/v1/files",
    ),
)
_METHODS = (
    *(
        "GET",
        "HEAD",
        "PUT",
        "DELETE",
        "PATCH",
        "OPTIONS",
        "TRACE",
        "CONNECT",
        "PROPFIND",
        "M-SEARCH",
        "PURGE",
        "QUERY",
    ),
    *(
        "get",
        "Post",
        "",
        "G",
        "GE T",
        "POST\t",
        "FOO",
        "A" * 300,
        "\x00",
        "MKCALENDAR",
        "SOURCE",
        "PRI",
        "ANNOUNCE",
    ),
)


@kind(8)
def hosts(rng: random.Random) -> Case:
    """Names that are not this machine's, and forms that hide one."""
    name = rng.choice((*_HOSTS, rng.randbytes(rng.randrange(1, 30))))
    lines = [b"Host: " + name]
    if rng.random() < 0.2:
        lines.append(b"Host: 127.0.0.1")
        rng.shuffle(lines)
    if rng.random() < 0.1:
        lines = []
    if rng.random() < 0.5:
        return Case((head("GET", "/v1/models", *lines, host=None),))
    return Case((head("POST", CHAT, *lines, b"Content-Length: %d" % len(GOOD), host=None) + GOOD,))


@kind(6)
def origins(rng: random.Random) -> Case:
    """Web pages that ask, plainly or with a question before."""
    origin = b"Origin: " + rng.choice((*_ORIGINS, rng.randbytes(rng.randrange(1, 20))))
    if rng.random() < 0.5:
        return Case((post(GOOD, origin),))
    asked = rng.choice((b"POST", b"x", b"", b"\xff", b"A" * 500))
    lines = [origin, b"Access-Control-Request-Method: " + asked]
    if rng.random() < 0.5:
        lines.append(
            b"Access-Control-Request-Headers: " + rng.choice((b"*", b"a, b", b"\xff", b"x" * 3_000, b"a: b"))
        )
    if rng.random() < 0.3:
        lines.append(b"Access-Control-Request-Private-Network: true")
    return Case((head("OPTIONS", CHAT, *lines),))


@kind(8)
def paths(rng: random.Random) -> Case:
    """Addresses that lead nowhere."""
    path = rng.choice(_PATHS).encode()
    if rng.random() < 0.3:
        at = rng.randrange(len(path) + 1)
        path = (
            path[:at] + rng.choice((b"%00", b"\x80", b"%c0%af", b"\x7f", b"..", b"/", b"?", b"%")) + path[at:]
        )
    if rng.random() < 0.05:
        path = b"/" + b"a" * rng.choice((9_000, 20_000, 90_000))
    if rng.random() < 0.7:
        return Case((head(rng.choice(("GET", "HEAD")), path),))
    return Case((post(GOOD, path=path),))


@kind(6)
def methods(rng: random.Random) -> Case:
    """Methods that no route takes."""
    method = rng.choice(_METHODS)
    path = rng.choice((CHAT, "/v1/models", "/health", "*", "127.0.0.1:443", "/", "/v1/models/x"))
    version = rng.choice(
        (*[b"HTTP/1.1"] * 6, b"HTTP/1.0", b"HTTP/0.9", b"HTTP/2.0", b"HTTP/9.9", b"HTTP", b"http/1.1", b"")
    )
    owed = Owed.ANYTHING if method == "CONNECT" else Owed.ANSWER
    return Case((head(method, path, version=version),), owed)


@kind(10)
def headers(rng: random.Random) -> Case:
    """Header lines in forms that parsers disagree about."""
    odd = (
        *(
            b"X",
            b": x",
            b"X : y",
            b" X: y",
            b"X: y\r\n z: folded",
            b"X: \x00",
            b"X: a\rb",
            b"X: a\nY: b",
            b"X:",
        ),
        *(
            b"\xff: x",
            b"X\x00: y",
            b"X: \xff\xfe",
            "X: é".encode(),
            b"Content-Type: " + b"a/" * 900,
            b"(): x",
            b"@: x",
        ),
        *(
            b"Connection: close, close",
            b"Connection: upgrade",
            b"Connection: \xff",
            b"Connection: keep-alive, x" * 9,
        ),
        *(
            b"Authorization: Bearer " + b"k" * 5_000,
            b"Authorization: Basic !!!",
            b"Authorization:",
            b"X-Api-Key: \xe9",
        ),
        *(
            b"Accept-Encoding: " + b"gzip," * 500,
            b"Content-Encoding: gzip",
            b"Cookie: " + b"a=b; " * 900,
            b"Te: x",
        ),
        *(
            b"User-Agent: " + b"\x1b[31m" * 50,
            b"Expect: 100-continue",
            b"Expect: 200-ok",
            b"Range: bytes=0-1,-9",
        ),
        *(
            b"X-Forwarded-For: 1.2.3.4",
            b"X-Forwarded-Host: evil",
            b"Forwarded: for=x",
            b"X-Request-Id: \xff",
            b"Proxy: x",
        ),
        *(
            b"Content-Type: text/html",
            b"Content-Type: multipart/form-data",
            b"Idempotency-Key: " + b"z" * 900,
        ),
    )
    lines = [rng.choice(odd) for _ in range(rng.randrange(1, 6))]
    if rng.random() < 0.3:
        return Case((head("GET", "/v1/models", *lines),))
    return Case((post(GOOD, *lines),))


@kind(4)
def header_floods(rng: random.Random) -> Case:
    """More headers, or longer ones, than anybody reads."""
    count = rng.choice((150, 199, 205, 1_000, 20_000))
    flood = rng.choice(
        (
            b"\r\n".join(b"X%d: 1" % number for number in range(count)),
            b"X: " + b"a" * rng.choice((60_000, 70_000, 500_000)),
            b"X" * rng.choice((9_000, 90_000)) + b": 1",
            b"\r\n".join([b"Host: 127.0.0.1"] * count),
            b"\r\n".join([b"Cookie: a=b"] * count),
            b"\r\n".join([b"X: " + b"a" * 900] * count),
        )
    )
    return Case((head("GET", "/v1/models", flood),))


@kind(3)
def line_ends(rng: random.Random) -> Case:
    """Line ends of other kinds, and empty lines before the request."""
    data = post(GOOD)
    changed = rng.choice(
        (
            data.replace(b"\r\n", b"\n"),
            data.replace(b"\r\n", b"\r"),
            data.replace(b"\r\n", b"\n\r", 2),
            b"\r\n" * rng.randrange(1, 50) + data,
            b"\n" * 20 + data,
            b" " + data,
            data.replace(b"POST ", b"POST  "),
            data.replace(b" HTTP", b"\tHTTP"),
            data.replace(b"HTTP/1.1\r\n", b"HTTP/1.1 \r\n"),
            b"\x00" + data,
        )
    )
    return Case((changed,), Owed.ANYTHING)
