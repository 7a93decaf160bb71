"""Typed and pasted numbers: the value, or why it is none and what is allowed."""

import pytest

from sndr_gui.kit import numbers


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ("", None),
        (" 512 ", 512),
        ("8,192", 8_192),
        ("8.192", 8_192),
        ("8 192", 8_192),
        ("8\N{NO-BREAK SPACE}192", 8_192),
        ("8\N{NARROW NO-BREAK SPACE}192", 8_192),
        ("8'192", 8_192),
        ("8\N{RIGHT SINGLE QUOTATION MARK}192", 8_192),
        ("8_192", 8_192),
        ("1,048,576", 1_048_576),
        ("1.048.576", 1_048_576),
        ("\N{FULLWIDTH DIGIT EIGHT}\N{FULLWIDTH COMMA}192", 8_192),
        ("8k", 8_192),
        ("128K", 131_072),
        ("128 k", 131_072),
    ],
)
def test_whole_numbers_as_people_write_them(content: str, value: int | None) -> None:
    assert numbers.parse_int(content, 128, 10_000_000, tokens=True) == (value, "")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("5", "A whole number from 128 to 10,000, or nothing."),
        ("1e3", "A whole number from 128 to 10,000, or nothing."),
        ("9" * 20, "A whole number from"),
        ("8,19", "groups of three, as in 131,072. A whole number from"),
        ("8.192.5", "groups of three"),
        ("1,048.576", "groups of three"),
        ("1,31,072", "groups of three"),
        ("0.5", "groups of three"),
        ("1.048.576", "That is 1,048,576. A whole number from 128 to 10,000"),
        ("128k", "That is 131,072."),
        ("32.8k", "Before “k” (× 1,024) stand digits alone"),
        ("k", "A whole number from"),
        ("-512", "A whole number from"),
        ("1M", "A whole number from"),
        ("²³⁴", "A whole number from"),
    ],
)
def test_what_is_no_whole_number_says_why(content: str, said: str) -> None:
    found, error = numbers.parse_int(content, 128, 10_000, tokens=True)
    assert found is None
    assert said in error


def test_k_is_for_tokens_alone() -> None:
    assert numbers.parse_int("8k", 0, 10_000)[1].startswith("“k” is understood where tokens are counted")


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ("", None),
        ("0,7", 0.7),
        ("0.7", 0.7),
        (".5", 0.5),
        ("2", 2.0),
        ("-0,5", -0.5),
        ("1,024.5", 1024.5),
        ("1.024,5", 1024.5),
        ("1 024,5", 1024.5),
        ("1.048.576", 1048576.0),
        ("1,024", 1.024),
    ],
)
def test_decimal_numbers(content: str, value: float | None) -> None:
    assert numbers.parse_float(content, -5, 2_000_000) == (value, "")


@pytest.mark.parametrize("content", ["x", "9", "1,2.5", "1,,5", "--1", ".", "-", "nan", "1e3", "1.5.5"])
def test_what_is_no_decimal_number_says_what_is_allowed(content: str) -> None:
    found, error = numbers.parse_float(content, -1, 2)
    assert (found, error) == (None, "A number from -1 to 2, or nothing.")
