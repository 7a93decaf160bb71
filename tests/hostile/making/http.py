"""Answers of an engine, or of a host, as nobody should send them: status, headers, body, and how they end."""

import json
from typing import Any

from hypothesis import strategies as st

from tests.hostile.making.text import HOSTILE, long_words, words
from tests.hostile.making.values import NUMBERS, changed, nested, values, written

METRICS = """\
# HELP vllm:num_requests_running Number of requests
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 1.0
vllm:kv_cache_usage_perc{engine="0"} 0.5
vllm:cache_config_info{block_size="16",kv_cache_size_tokens="465920"} 1.0
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{le="0.1"} 3.0
vllm:time_to_first_token_seconds_bucket{le="+Inf"} 4.0
vllm:time_to_first_token_seconds_count 4.0
vllm:time_to_first_token_seconds_sum 0.4
vllm:spec_decode_num_drafts_total 10.0
vllm:spec_decode_num_accepted_tokens_total 8.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{position="0"} 8.0
vllm:prompt_tokens_by_source_total{source="local_compute"} 100.0
vllm:request_prefill_time_seconds_sum 1.0
llamacpp:tokens_predicted_total 12
llamacpp:prompt_tokens_total 12
llamacpp:prompt_tokens_seconds 112.5
llamacpp:requests_deferred 0
llamacpp:spec_decode_num_drafts_total 3
"""
_VALUES = (*map(str, NUMBERS), "NaN", "+Inf", "-Inf", "1e999", "0x10", "", "1 2 3", "1_0", "٣")
_metric_lines = METRICS.splitlines()


def _other_value(line: str, value: str) -> str:
    return f"{line.rpartition(' ')[0]} {value}"


def _other_label(line: str, value: str) -> str:
    before, quote, after = line.partition('"')
    return f"{before}{quote}{value}{after[after.find(quote) :]}" if quote else line


_metric = st.one_of(
    st.sampled_from(_metric_lines),
    st.builds(_other_value, st.sampled_from(_metric_lines), st.sampled_from(_VALUES)),
    st.builds(_other_label, st.sampled_from(_metric_lines), st.one_of(words, st.sampled_from(_VALUES))),
    words,
    st.sampled_from(
        ["{", "a{", 'a{b="', 'a{b="\\', "# TYPE", "# TYPE a b c", "# HELP", "# EOF", "a{} 1", "=", "a,b 1"]
    ),
)
metrics = st.lists(_metric, max_size=40).map(lambda lines: "\n".join(lines).encode("utf-8", "replace"))
"""Texts in nearly Prometheus' format."""

SLOT = {
    "id": 0,
    "n_ctx": 4096,
    "is_processing": True,
    "speculative": True,
    "n_prompt_tokens": 10,
    "next_token": [{"n_decoded": 3}],
}
MODELS = {"object": "list", "data": [{"id": "demo", "object": "model"}]}
COMPLETION = {"choices": [{"text": "a"}], "usage": {"completion_tokens": 3}, "data": [{"embedding": [0.1]}]}
CHUNK: dict[str, Any] = {
    "id": "c",
    "choices": [
        {
            "index": 0,
            "text": "x",
            "delta": {
                "content": "a",
                "reasoning_content": "b",
                "tool_calls": [{"index": 0, "function": {"name": "f"}}],
            },
            "logprobs": {
                "content": [{"token": "a", "logprob": -0.1, "top_logprobs": [{"token": "b", "logprob": -1}]}]
            },
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}},
    "timings": {"prompt_n": 3, "predicted_n": 2, "predicted_per_second": 50.0, "cache_n": 1},
    "content": "a",
    "stop": True,
    "tokens_evaluated": 3,
    "error": {"message": "no", "type": "t", "code": 500, "param": "p"},
}
slots = st.one_of(st.lists(changed(SLOT), max_size=3).map(written), values.map(written))
models = st.one_of(changed(MODELS).map(written), values.map(written))
completions = st.one_of(changed(COMPLETION).map(written), values.map(written))
chunks = st.one_of(changed(CHUNK).map(written), changed(CHUNK, 2).map(written), values.map(written))
_frames = st.builds(
    lambda before, data, end: before + data + end,
    st.sampled_from([b"data: ", b"data:", b"data", b"event: error\ndata: ", b": ", b"id: 1\ndata: ", b""]),
    st.one_of(chunks, st.just(b"[DONE]"), words.map(lambda word: word.encode("utf-8", "replace"))),
    st.sampled_from([b"\n\n", b"\n\n", b"\n\n", b"\r\n\r\n", b"\n", b""]),
)
streams = st.lists(_frames, max_size=8).map(b"".join)
"""Event streams of an answer."""

bodies = st.one_of(
    st.just(b""),
    st.binary(max_size=60),
    values.map(written),
    metrics,
    streams,
    st.sampled_from(
        [nested("list", 50_000), nested("object", 50_000), b"<html>", json.dumps(HOSTILE).encode()]
    ),
    long_words.map(lambda word: word.encode("utf-8", "replace")),
)
_STATUS = (
    b"200 OK",
    b"200",
    b"100 Continue",
    b"204 No Content",
    b"301 Moved",
    b"304 Not",
    b"404 No",
    b"500 X",
    b"503 X",
)
_ODD_STATUS = (b"999 X", b"000 X", b"-1 X", b"2000 X", b"99999999999999999999 X", b"", b"200 \x1b[2J", b"abc")
_LINES = (
    b"Content-Type: application/json",
    b"Content-Encoding: gzip",
    b"Content-Encoding: gzip, br, deflate",
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: gzip",
    b"Content-Length: 5",
    b"Content-Length: -1",
    b"Content-Length: 99999999999999999999",
    b"Content-Length: 1\r\nContent-Length: 2",
    b"Location: http://169.254.169.254/",
    b"Set-Cookie: a=b",
    b"X: " + b"a" * 5000,
    b"X\x00: a",
    b": a",
    b"no colon",
    b"Connection: keep-alive",
    "X: \u20ac".encode(),
)


def answer(status: bytes, lines: list[bytes], body: bytes, length: bool) -> bytes:
    """A whole answer; with its right length or without one."""
    head = [b"HTTP/1.1 " + status, *lines, *([b"Content-Length: %d" % len(body)] if length else [])]
    return b"\r\n".join([*head, b"", body])


def good(body: bytes) -> bytes:
    """An answer in which only the body may be odd."""
    return answer(b"200 OK", [b"Content-Type: application/json", b"Connection: close"], body, True)


def answers_with(body: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Answers with such bodies; most of them right as HTTP."""
    odd = st.builds(
        answer,
        st.sampled_from(_STATUS + _ODD_STATUS),
        st.lists(st.sampled_from(_LINES), max_size=4),
        st.one_of(body, bodies),
        st.booleans(),
    )
    return st.one_of(body.map(good), body.map(good), odd, st.binary(max_size=100))
