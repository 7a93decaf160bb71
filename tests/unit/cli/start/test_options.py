"""Arguments of an engine on the command line: a flag with its values is several words, JSON is one."""

import click
import pytest

from engine_host.cli.start.options import overrides_of


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--flag value",), ("--flag", "value")),
        (("--flag", "value"), ("--flag", "value")),
        (("--flag=value",), ("--flag=value",)),
        (("--chat 'two words' --more",), ("--chat", "two words", "--more")),
        (("--json", '{"a": 1}'), ("--json", '{"a": 1}')),
        (("--json '{\"a\": 1}'",), ("--json", '{"a": 1}')),
    ],
)
def test_words(given: tuple[str, ...], words: tuple[str, ...]) -> None:
    assert overrides_of(tuple(f"extra_arguments={one}" for one in given)).extra_arguments == words


def test_an_open_quote_is_a_wrong_option() -> None:
    with pytest.raises(click.UsageError, match="no list of arguments"):
        overrides_of(("extra_arguments=--flag 'x",))
