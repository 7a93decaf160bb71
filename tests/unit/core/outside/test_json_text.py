"""JSON from outside: plain values, or a ValueError."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_host.core.outside import json_text

plain = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(), inner, max_size=4)),
    max_leaves=10,
)


@given(plain)
def test_what_json_can_hold_is_read(value: object) -> None:
    assert json_text.parse(json.dumps(value)) == value
    assert json_text.parse(json.dumps(value, ensure_ascii=False).encode()) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "NaN",
        "Infinity",
        "1e999",
        "[1.5, -1e400]",
        "9" * 5000,
        '"\\ud800"',
        b'"\xff"',
        "[" * 100_000,
        '{"a":' * 100_000,
        "\ufeff{}",
        "\ud800",
    ],
)
def test_everything_else_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - that it is one is all that is promised
        json_text.parse(text)


def test_python_s_own_writing_is_taken_where_asked_for() -> None:
    assert json_text.parse("[Infinity, NaN]", finite=False)[0] == float("inf")
    with pytest.raises(ValueError, match="no object"):
        json_text.parse_object("[]")


def test_values_are_counted_before_they_are_made() -> None:
    assert json_text.parse("[1,2,3]", 2) == [1, 2, 3]
    with pytest.raises(ValueError, match="more values"):
        json_text.parse("[1,2,3,4]", 2)


def test_numbers_beyond_64_bits_are_refused_and_texts_like_them_are_not() -> None:
    json_text.refuse_huge('{"a": "99999999999999999999", "b": [9223372036854775807, 1.5]}')
    json_text.refuse_huge('{"hash": "1e999"}')
    for text in ('{"a": 9223372036854775808}', "[[1e400]]", '{"a": {"b": -99999999999999999999}}'):
        with pytest.raises(ValueError, match="too large"):
            json_text.refuse_huge(text)


def test_the_answer_is_the_last_line_and_nothing_else_is() -> None:
    assert json_text.parse_last_line(b'motd\n{"a": 1}\r\n\n') == {"a": 1}


@pytest.mark.parametrize("printed", [b"", b"\n", b'{"a": 1}\nbye\n', b"[1]\n", b"\xff\n"])
def test_a_last_line_that_is_no_object_is_refused(printed: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        json_text.parse_last_line(printed)
