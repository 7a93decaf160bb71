"""Variables of a start as words and as a table; text that is no variable is refused."""

import pytest
from pydantic import ValidationError

from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.engine_settings.variables import variables_of


def test_a_table_and_words_mean_the_same() -> None:
    words = Overrides(variables=("A=1", "B=x=y", "A=2"))
    assert words.variables == ("A=2", "B=x=y"), "the later of one name holds"
    assert Overrides.model_validate({"variables": {"A": 2, "B": "x=y"}}) == words
    assert Overrides.model_validate_json(words.model_dump_json()) == words
    assert variables_of(words.variables) == {"A": "2", "B": "x=y"}
    assert variables_of(["EMPTY="]) == {"EMPTY": ""}


@pytest.mark.parametrize(
    "word",
    [
        "A",
        "=x",
        "1A=x",
        "A B=x",
        "A-B=x",
        "A=line\nB=other",
        "A=\x00",
        "$(id)=x",
        f"{'A' * 129}=x",
        f"A={'x' * 4097}",
        "\u202eA=x",
    ],
)
def test_what_is_no_variable_is_refused(word: str) -> None:
    with pytest.raises(ValidationError):
        Overrides(variables=(word,))


def test_a_table_holds_text_and_numbers_and_not_too_many() -> None:
    for value in (True, None, ["a"], {"a": "b"}):
        with pytest.raises(ValidationError):
            Overrides.model_validate({"variables": {"A": value}})
    with pytest.raises(ValidationError, match="more than 100"):
        Overrides(variables=tuple(f"A{number}=x" for number in range(101)))
