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


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("context=abc", "context cannot be 'abc': it takes a whole number from 128 to 1073741824."),
        ("gpu_memory=2", "gpu_memory cannot be '2': it takes a number, above 0 and at most 1."),
        ("eager=perhaps", "eager cannot be 'perhaps': it takes true or false."),
        ("flash_attention=x", "flash_attention cannot be 'x': it takes auto, on or off."),
        ("cntext=1", "There is no setting cntext. Did you mean context?"),
        ("context", "--set takes NAME=VALUE; 'context' has no =."),
    ],
)
def test_a_wrong_setting_is_named_with_what_it_takes(given: str, says: str) -> None:
    with pytest.raises(click.UsageError) as caught:
        overrides_of((given,))
    assert caught.value.message == says


def test_variables_are_given_by_an_option_of_their_own() -> None:
    found = overrides_of(("variables=A=1",), variables=("B=two words", "A=2"))
    assert found.variables == ("B=two words", "A=1")
    with pytest.raises(click.UsageError, match="variables"):
        overrides_of((), variables=("no variable",))


def test_what_is_near_no_setting_does_not_list_all() -> None:
    with pytest.raises(click.UsageError) as caught:
        overrides_of(("swap_space=4",))
    assert "--set extra_arguments='--swap-space VALUE'" in caught.value.message
    assert "batched_tokens" not in caught.value.message
