"""Embeddings with fewer numbers than the model's."""

import base64
import json
import struct
from typing import Any

import pytest

from engine_host.gateway.error_answers import EndpointError
from engine_host.gateway.openai.dimensions import Shortened, wanted_dimensions


def answer(*embeddings: Any) -> bytes:
    return json.dumps({"object": "list", "data": [{"embedding": one} for one in embeddings]}).encode()


def test_vectors_are_cut_and_have_length_one_again() -> None:
    packed = base64.b64encode(struct.pack("<3f", 3.0, 4.0, 12.0)).decode()
    told = json.loads(Shortened(2).convert(answer([3, 4, 12], [0, 0, 1], packed)))
    listed, empty, coded = (one["embedding"] for one in told["data"])
    assert listed == pytest.approx([0.6, 0.8])
    assert empty == [0, 0]
    assert struct.unpack("<2f", base64.b64decode(coded)) == pytest.approx((0.6, 0.8))


def test_more_numbers_than_there_are_is_the_requests_fault() -> None:
    with pytest.raises(EndpointError) as refused:
        Shortened(4).convert(answer([1, 2, 3]))
    assert (refused.value.status, refused.value.param) == (400, "dimensions")


@pytest.mark.parametrize("wrong", [0, -1, True, 1.5, "2", [], 1 << 40])
def test_what_is_no_number_of_dimensions_is_refused(wrong: Any) -> None:
    with pytest.raises(EndpointError):
        wanted_dimensions({"dimensions": wrong})
    assert wanted_dimensions({}) is None


@pytest.mark.parametrize(
    "body", [b"", b"7", b"{}", b'{"data":7}', b'{"data":[7]}', answer(None), answer("!!"), answer(["x"])]
)
def test_an_answer_of_another_form_is_the_engines_fault(body: bytes) -> None:
    with pytest.raises(EndpointError) as refused:
        Shortened(1).convert(body)
    assert refused.value.status == 502
