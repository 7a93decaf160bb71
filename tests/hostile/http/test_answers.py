"""The judge of the fuzz: what it must not let pass, and what it must."""

import json

import pytest

from tests.hostile.http.answers import NotInFormError, of_control, of_endpoint, read

ERROR = json.dumps({"error": {"code": "invalid_json", "message": "It is none."}}).encode()
NO_ENGINE = json.dumps({"error": {"code": "no_engine_runs", "message": "None runs."}}).encode()
REASON = json.dumps({"error": {"reason": "bad_request", "message": "No."}}).encode()


def answer(status: int, body: bytes, kind: bytes = b"application/json") -> bytes:
    """One answer as it comes over the wire."""
    return b"HTTP/1.1 %d X\r\ncontent-type: %b\r\ncontent-length: %d\r\n\r\n%b" % (
        status,
        kind,
        len(body),
        body,
    )


@pytest.mark.parametrize(
    ("data", "engine_runs", "good"),
    [
        (answer(200, b"anything"), True, True),
        (answer(400, ERROR), True, True),
        (answer(400, ERROR, b"text/plain"), True, False),
        (answer(400, b"Bad Request"), True, False),
        (answer(404, b"{}"), True, False),
        (answer(404, b'{"error": {"code": null, "message": "x"}}'), True, False),
        (answer(404, b'{"error": {"code": "x", "message": ""}}'), True, False),
        (answer(500, ERROR), True, False),
        (answer(503, NO_ENGINE), True, False),
        (answer(503, NO_ENGINE), False, True),
        (answer(503, ERROR), False, False),
        (answer(502, NO_ENGINE), False, False),
    ],
)
def test_an_error_needs_an_object_with_a_code(data: bytes, engine_runs: bool, good: bool) -> None:
    (found,) = read(data, is_head=False, closed=True).answers
    assert (of_endpoint(engine_runs=engine_runs)(found, False) == "") is good


def test_the_control_api_needs_a_reason() -> None:
    judged = [
        of_control(read(one, is_head=False, closed=True).answers[0], False)
        for one in (answer(400, REASON), answer(400, ERROR), answer(500, REASON))
    ]
    assert [fault == "" for fault in judged] == [True, False, False]


@pytest.mark.parametrize(
    "data",
    [
        b"400 Bad Request\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno header\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        answer(200, b"a") + b"garbage",
    ],
)
def test_what_is_no_http_is_not_in_form(data: bytes) -> None:
    with pytest.raises(NotInFormError):
        read(data, is_head=False, closed=True)


def test_several_answers_and_one_that_breaks_off_are_taken_apart() -> None:
    chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"
    found = read(
        b"HTTP/1.1 100 Continue\r\n\r\n" + chunked + answer(400, ERROR) + chunked[:-4],
        is_head=False,
        closed=True,
    )
    assert [one.status for one in found.answers] == [200, 400]
    assert found.answers[0].body == b"hi"
    assert found.rest == chunked[:-4]
    assert read(answer(404, b"")[:-1] + b"\n", is_head=True, closed=False).answers[0].status == 404
