"""Bodies: JSON that is none, and JSON of which each known field holds what it must not."""

import json
import random
from typing import Any

from tests.hostile.http.cases.case import Case, Owed, kind, post

MESSAGE = {"role": "user", "content": "hi"}
ROUTES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": [MESSAGE]},
    "/v1/completions": {"prompt": "once"},
    "/v1/embeddings": {"input": "words"},
    "/v1/responses": {"input": "words"},
    "/v1/messages": {"messages": [MESSAGE], "max_tokens": 5},
    "/v1/messages/count_tokens": {"messages": [MESSAGE]},
}
FIELDS = (
    *(
        "model",
        "messages",
        "prompt",
        "input",
        "stream",
        "stream_options",
        "max_tokens",
        "max_completion_tokens",
    ),
    *("n", "seed", "temperature", "top_p", "presence_penalty", "frequency_penalty", "stop", "tools"),
    *("tool_choice", "suffix", "echo", "logprobs", "top_logprobs", "logit_bias", "response_format", "user"),
    *("best_of", "parallel_tool_calls", "reasoning_effort", "metadata", "store", "grammar", "json_schema"),
    *(
        "system",
        "stop_sequences",
        "thinking",
        "top_k",
        "instructions",
        "previous_response_id",
        "encoding_format",
    ),
    *("dimensions", "cache_prompt", "id_slot", "n_predict", "samplers", "lora", "return_tokens", "__proto__"),
)
TEXTS = (
    *(
        "",
        " ",
        "x",
        "\x00",
        "a\x00b",
        "\x1b[31m\x1b]52;c;aGk=\x07",
        "\u202egnp.exe",
        "\ufeff",
        "\u2028",
        "𝕊" * 9,
    ),
    *("../../../../etc/passwd", "file:///dev/zero", "${jndi:ldap://x}", "%s%n%x", "'; DROP TABLE x; --"),
    *("true", "null", "NaN", "1e999", "<script>", "é" * 50, "{{7*7}}", "A" * 5_000, "\r\nX: 1\r\n\r\n"),
)


def value(rng: random.Random, depth: int = 0) -> Any:
    """A value of any type, most often one that its field does not take."""
    kinds = 11 if depth < 3 else 8
    match rng.randrange(kinds):
        case 0:
            return None
        case 1:
            return rng.random() < 0.5
        case 2:
            return rng.choice((0, -1, 1, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 10**30, 10**400))
        case 3:
            return rng.choice((0.0, -0.0, 1e308, -1e-308, 5e-324, 0.1, 1.0))
        case 4 | 5:
            return rng.choice(TEXTS)
        case 6:
            return []
        case 7:
            return {}
        case 8:
            return [value(rng, depth + 1) for _ in range(rng.randrange(1, 5))]
        case 9:
            return {rng.choice((*FIELDS[:12], *TEXTS[:6])): value(rng, depth + 1) for _ in range(3)}
        case _:
            return [{"role": rng.choice(("user", "", 3, None, "system")), "content": value(rng, depth + 1)}]


def request(rng: random.Random) -> tuple[str, dict[str, Any]]:
    """A route and a good request for it, streamed or not."""
    path = rng.choice((*ROUTES, "/v1/chat/completions", "/v1/completions"))
    return path, {**ROUTES[path], "stream": rng.random() < 0.3}


@kind(30)
def wrong_types(rng: random.Random) -> Case:
    """Known fields with values of every type."""
    path, body = request(rng)
    for _ in range(rng.randrange(1, 4)):
        body[rng.choice((*FIELDS, *body))] = value(rng)
    return Case((post(json.dumps(body, ensure_ascii=rng.random() < 0.5).encode(), path=path),))


@kind(4)
def literals(rng: random.Random) -> Case:
    """Numbers and names that JSON does not have, and some that no machine has."""
    path, body = request(rng)
    word = rng.choice(
        (
            "NaN",
            "-Infinity",
            "1e400",
            "-1e99999",
            "0x10",
            "01",
            "+1",
            ".5",
            "1.",
            "9" * 6_000,
            "1" + "0" * 4_000,
        )
    )
    text = json.dumps({**body, rng.choice(FIELDS): "@"}).replace('"@"', word)
    return Case((post(text.encode(), path=path),))


@kind(4)
def half_characters(rng: random.Random) -> Case:
    """Surrogates, escaped or encoded, in values and in names."""
    path, body = request(rng)
    half = rng.choice(("\\ud800", "\\udfff", "\\ud83d", "\\udc00\\ud800", "\\ud83d\\u0041"))
    text = json.dumps({**body, "user": "@", "metadata": {"@": "@"}}).replace("@", half)
    if rng.random() < 0.3:
        text = json.dumps({**body, "messages": [{"role": "user", "content": "@"}]}).replace("@", half)
    return Case((post(text.encode(), path=path),), Owed.REFUSAL)


@kind(8)
def no_json(rng: random.Random) -> Case:
    """Text that breaks somewhere."""
    path, body = request(rng)
    good = json.dumps(body).encode()
    at = rng.randrange(len(good))
    data = rng.choice(
        (
            good[:at],
            good[:at] + bytes([rng.randrange(256)]) + good[at + 1 :],
            good + good,
            good + b"\x00",
            b"\xff\xfe" + json.dumps(body).encode("utf-16-le"),
            json.dumps(body).encode("utf-32"),
            b"\xef\xbb\xbf" + good,
            good.replace(b'"', b"'"),
            good[:-1] + b",}",
            good[:at] + b"\xed\xa0\x80" + good[at:],
            good[:at] + b"\xc0\xaf\xf8\x88" + good[at:],
            b"",
            b" " * 3_000,
            rng.choice(
                (b"null", b"true", b"[]", b'""', b"0", b"{}", b"[{}]", b'{"a":1,}', b"{]", b"//", b"{'a'")
            ),
            rng.randbytes(rng.randrange(1, 400)),
            b"a=1&b=2",
            b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--x--\r\n",
        )
    )
    return Case((post(data, path=path),))


@kind(3)
def deep(rng: random.Random) -> Case:
    """Nesting without an end."""
    path, body = request(rng)
    depth = rng.choice((100, 900, 1_100, 20_000, 200_000))
    opening, closing = rng.choice(((b"[", b"]"), (b'{"a":', b"}"), (b'[{"a":', b"}]")))
    nested = opening * depth + b"1" + (closing * depth if rng.random() < 0.8 else b"")
    field = rng.choice(FIELDS).encode()
    return Case((post(json.dumps(body).encode()[:-1] + b', "' + field + b'": ' + nested + b"}", path=path),))


@kind(2)
def many_values(rng: random.Random) -> Case:
    """Large bodies of small things."""
    path, body = request(rng)
    many = rng.choice((b"[],", b"{},", b"1,", b'"",', b"null,")) * rng.choice((5_000, 60_000))
    field = rng.choice(("messages", "stop", "tools", "user", "logit_bias", "prompt")).encode()
    data = json.dumps(body).encode()[:-1] + b', "' + field + b'": [' + many + b"1]}"
    return Case((post(data, path=path),))


@kind(2)
def many_messages(rng: random.Random) -> Case:
    """Good messages, thousands of them; the last may be none."""
    messages: list[Any] = [MESSAGE] * rng.choice((100, 3_000))
    if rng.random() < 0.5:
        messages.append(value(rng))
    return Case((post(json.dumps({"messages": messages}).encode()),))


@kind(6)
def good(rng: random.Random) -> Case:
    """A good request, which is answered however much is thrown at the host meanwhile."""
    path = rng.choice(("/v1/chat/completions", "/v1/completions"))
    fake = {"tokens": rng.randrange(1, 30), "size": rng.choice((1, 4, 500))}
    body = {**ROUTES[path], "stream": rng.random() < 0.5, "fake": fake}
    return Case((post(json.dumps(body).encode(), path=path),), Owed.OK)
