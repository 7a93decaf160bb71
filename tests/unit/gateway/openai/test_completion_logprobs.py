"""llama.cpp's log probabilities as OpenAI's completions have them."""

import json

import pytest

from engine_host.gateway.error_answers import EndpointError
from engine_host.gateway.openai.completion_logprobs import CompletionLogprobs

CONTENT = [
    {
        "token": "é ",
        "logprob": -0.5,
        "top_logprobs": [{"token": "é ", "logprob": -0.5}, {"token": "b", "logprob": -1.0}],
    },
    {
        "token": "c",
        "logprob": -3.0,
        "top_logprobs": [{"token": "d", "logprob": -0.1}, {"token": "e", "logprob": -0.2}],
    },
]
WANTED = {
    "tokens": ["é ", "c"],
    "token_logprobs": [-0.5, -3.0],
    "top_logprobs": [{"é ": -0.5, "b": -1.0}, {"d": -0.1, "e": -0.2, "c": -3.0}],
    "text_offset": [0, 2],
}


def test_a_whole_answer() -> None:
    body = {"id": "x", "choices": [{"index": 0, "text": "é c", "logprobs": {"content": CONTENT}}]}
    converted = json.loads(CompletionLogprobs(2).convert(json.dumps(body).encode()))
    assert converted == {"id": "x", "choices": [{"index": 0, "text": "é c", "logprobs": WANTED}]}


def test_no_more_than_was_asked_for_and_the_chosen_one_always() -> None:
    body = {"choices": [{"logprobs": {"content": CONTENT}}]}
    (choice,) = json.loads(CompletionLogprobs(0).convert(json.dumps(body).encode()))["choices"]
    assert choice["logprobs"]["top_logprobs"] == [{"é ": -0.5}, {"c": -3.0}]


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_a_stream_in_pieces_of_any_size(size: int) -> None:
    frames = [
        {"choices": [{"index": 0, "text": one["token"], "logprobs": {"content": [one]}}]} for one in CONTENT
    ]
    ended = {"choices": [{"index": 0, "text": "", "logprobs": None, "finish_reason": "length"}]}
    stream = b": ping\n\n" + b"".join(
        b"data: " + json.dumps(one).encode() + b"\n\n" for one in (*frames, ended)
    )
    stream += b"data: [DONE]\n\n"
    form = CompletionLogprobs(2)
    converted = b"".join(form.feed(stream[at : at + size]) for at in range(0, len(stream), size)) + form.end()
    assert converted.startswith(b": ping\n\n")
    assert converted.endswith(b"data: [DONE]\n\n")
    parsed = [json.loads(line[5:]) for line in converted.split(b"\n") if line.startswith(b"data: {")]
    assert [one["choices"][0]["text"] for one in parsed] == ["é ", "c", ""]
    assert [one["choices"][0]["logprobs"]["text_offset"] for one in parsed[:2]] == [[0], [2]]
    assert parsed[2] == ended


ODD = (
    b"",
    b"[]",
    b"[" * 100_000,
    b'{"choices": 5}',
    b'{"choices": [5]}',
    b'{"choices": [{"logprobs": {"content": [5]}}]}',
    b'{"choices": [{"logprobs": {"content": [{"token": 5, "logprob": 1}]}}]}',
    b'{"choices": [{"index": [], "logprobs": {"content": [{"token": "a"}]}}]}',
    b'{"choices": [{"logprobs": {"content": []}}], "a": "\\ud800"}',
)


@pytest.mark.parametrize("content", ODD, ids=lambda content: str(content[:60]))
def test_an_answer_of_another_form_is_the_engines_fault(content: bytes) -> None:
    with pytest.raises(EndpointError) as caught:
        CompletionLogprobs(1).convert(content)
    assert (caught.value.status, caught.value.code) == (502, "engine_error")
    if b'"logprobs"' in content:
        with pytest.raises(EndpointError):
            CompletionLogprobs(1).feed(b"data: " + content + b"\n\n")
