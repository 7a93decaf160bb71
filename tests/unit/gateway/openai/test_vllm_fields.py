"""What vLLM refuses of a chat or a completion that OpenAI and llama.cpp take."""

from typing import Any

import pytest

from engine_host.gateway.error_answers import EndpointError
from engine_host.gateway.openai.vllm_fields import as_vllm_reads


def test_fields_that_are_null_are_left_out() -> None:
    assert as_vllm_reads({"n": None, "ignore_eos": None, "prompt": "a"}) == {"prompt": "a"}


@pytest.mark.parametrize(
    ("biases", "read"),
    [([[5, -1], [6, False]], {"5": -1, "6": -100}), ({"5": False, "6": 2}, {"5": -100, "6": 2})],
)
def test_biases_of_llamacpps_form_are_those_of_openais(biases: Any, read: Any) -> None:
    assert as_vllm_reads({"logit_bias": biases}) == {"logit_bias": read}


def test_what_it_reads_is_not_touched() -> None:
    body = {"prompt": "a", "logit_bias": {"5": 1}}
    assert as_vllm_reads(body) is body


def test_a_word_is_refused_with_where_its_tokens_are_told() -> None:
    with pytest.raises(EndpointError, match="/tokenize") as refused:
        as_vllm_reads({"logit_bias": [["word", 1]]})
    assert refused.value.param == "logit_bias"
