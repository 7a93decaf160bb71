"""The reading of a request's body: JSON of a depth that everything after it can walk."""

import pytest

from engine_host.gateway.error_answers import EndpointError
from engine_host.gateway.openai.bodies import parse_body


@pytest.mark.parametrize("inner", [b"[", b'{"a":'])
def test_nesting_has_an_end_that_is_not_the_interpreters(inner: bytes) -> None:
    outer = {b"[": b"]", b'{"a":': b"}"}[inner]
    assert parse_body(b'{"prompt":' + inner * 199 + b"1" + outer * 199 + b"}")
    with pytest.raises(EndpointError, match="deeper than 200") as caught:
        parse_body(b'{"prompt":' + inner * 200 + b"1" + outer * 200 + b"}")
    assert caught.value.code == "invalid_json"
