"""Every command: its help, and what is typed wrong for it in one sentence below its usage."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from engine_host.cli.root import root
from engine_host.cli.text.usage_errors import _OTHERS
from tests.unit.cli.whole.every_command import DOING, all_commands, examples_of, make_files, typed

Sndr = Callable[..., tuple[int, str, str]]
EVERY = tuple(all_commands())
GROUPS = tuple((words, one) for words, one in EVERY if isinstance(one, click.Group))
COUNTED = (click.types.IntParamType, click.types.FloatParamType, click.Choice)


def names(rows: tuple[tuple[str, click.Command], ...]) -> list[str]:
    return [words for words, _ in rows]


def refused(sndr: Sndr, words: str, *given: str) -> str:
    """Check that something typed wrong is refused, for people and for programs; return the sentence."""
    code, out, err = sndr(*given)
    assert (code, out) == (2, ""), given
    usage, _, sentence = err.partition("\nError: ")
    assert usage.startswith(f"Usage: sndr {words}".rstrip()), (given, err)
    # One sentence, also where a list of choices belongs to it.
    assert sentence.count("\n") == 1, (given, err)
    if "--" not in given:
        at = len(words.split())
        code, out, err = sndr(*given[:at], "--json", *given[at:])
        assert (code, err) == (2, ""), given
        problem = json.loads(out)["error"]
        assert problem["reason"] == "bad_request"
        assert problem["fix"]["command"] == f"sndr {words}".rstrip() + " --help", given
    return sentence


@pytest.mark.parametrize(("words", "command"), EVERY, ids=names(EVERY))
def test_help_says_what_it_is_for(words: str, command: click.Command, sndr: Sndr) -> None:
    code, out, err = sndr(*words.split(), "--help")
    assert (code, err) == (0, "")
    assert out.startswith(f"Usage: sndr {words} ")
    said = (command.help or "").split("\n")[0]
    assert said[:1].isupper()
    assert said.split()[0] in out.split("\n\n")[1].split()


def mistakes(words: str, command: click.Command) -> Iterator[list[str]]:
    """Yield what can be typed wrong for a command: options, values, too much, too little."""
    head = words.split()
    right = typed(examples_of(command)[0])
    arguments = [one for one in command.params if isinstance(one, click.Argument)]
    yield [*head, "--no-such-option"]
    if any(one.required for one in arguments):
        yield head
    if not isinstance(command, click.Group) and all(one.nargs == 1 for one in arguments):
        yield [*right, *["8"] * (len(arguments) + 1)]
    if any(isinstance(one.type, COUNTED) for one in arguments):
        yield [*head, *["no-such-value"] * len(arguments)]
    for one in command.params:
        if isinstance(one, click.Option) and not one.is_flag:
            yield [*right, one.opts[0]]
            if isinstance(one.type, COUNTED):
                yield [*right, one.opts[0], "no-such-value"]


@pytest.mark.parametrize(("words", "command"), DOING, ids=names(DOING))
def test_what_is_typed_wrong_is_one_sentence_below_the_usage(
    words: str, command: click.Command, sndr: Sndr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_files(typed(examples_of(command)[0]), tmp_path)
    for given in mistakes(words, command):
        refused(sndr, words, *given)


@pytest.mark.parametrize(("words", "command"), GROUPS, ids=names(GROUPS))
def test_a_group_names_what_is_near_a_wrong_command(words: str, command: click.Command, sndr: Sndr) -> None:
    assert isinstance(command, click.Group)
    first = next(iter(command.commands))
    sentence = refused(sndr, words, *words.split(), first[1:] if len(first) > 3 else f"{first}x")
    assert f"`sndr {words} {first}`" in sentence
    assert "Did you mean" not in refused(sndr, words, *words.split(), "qqqqqqqq")


@pytest.mark.parametrize(
    ("typed_word", "meant"),
    [
        ("strat", "Did you mean `sndr run`, `sndr launch` or `sndr serve`?"),
        ("statu", "Did you mean `sndr status`?"),
        ("ps", "Did you mean `sndr status`?"),
        ("dowload", "Did you mean `sndr models download`?"),
        ("bisect", "Did you mean `sndr patches bisect`?"),
        ("help", "Did you mean `sndr --help`?"),
    ],
)
def test_a_wrong_command_is_told_what_does_it(typed_word: str, meant: str, sndr: Sndr) -> None:
    sentence = refused(sndr, "", typed_word)
    assert sentence == f"No such command '{typed_word}'. {meant}\n"


def test_a_wrong_command_of_a_group_is_told_which_there_are(sndr: Sndr) -> None:
    sentence = refused(sndr, "routes", "routes", "frobnicate")
    assert sentence == "No such command 'frobnicate'. `sndr routes` has back, cutover, list, remove, set.\n"


def test_each_word_of_another_program_leads_to_a_command_and_is_none() -> None:
    every = {words for words, _ in EVERY} | {"--help"}
    for word, leads in _OTHERS.items():
        assert set(leads) <= every
        assert word not in root.commands


def test_nothing_typed_shows_all_commands(sndr: Sndr) -> None:
    code, out, err = sndr()
    assert (code, out) == (2, "")
    for name in root.commands:
        assert f"\n  {name} " in err


@pytest.mark.parametrize("word", ["uninstall", "update", "upgrade"])
def test_no_command_for_another_machine_is_suggested_for_this_program(sndr: Sndr, word: str) -> None:
    sentence = refused(sndr, "", word)
    assert "README, Update and uninstall" in sentence
    assert "sndr host" not in sentence


@pytest.mark.parametrize(
    ("words", "option", "value", "takes"),
    [
        ("fit", "--context", "abc", "a whole number of at least 128."),
        ("fit", "--streams", "0", "a whole number from 1 to 4,096."),
        ("telemetry record", "--seconds", "x", "a number from 1 to 2,678,400."),
    ],
)
def test_a_number_says_what_it_may_be(sndr: Sndr, words: str, option: str, value: str, takes: str) -> None:
    sentence = refused(sndr, words, *words.split(), option, value)
    assert sentence == f"Invalid value for '{option}': it takes {takes}\n"


def test_the_help_of_every_command_fits_eighty_columns_and_tears_no_word() -> None:
    for words, one in (("", root), *EVERY):
        context = click.Context(one, info_name=f"sndr {words}".rstrip(), terminal_width=80)
        lines = one.get_help(context).splitlines()
        assert [line for line in lines if len(line) > 80] == [], words
        # click tears what is longer than a line: none of what it is given to fold is.
        pieces = " ".join((*one.collect_usage_pieces(context), one.help or "")).split()
        assert max(map(len, (*pieces, ""))) < 60, words


@pytest.mark.parametrize(
    ("group", "typed_word", "meant"),
    [
        ("models", "delete", "remove"),
        ("keys", "rm", "revoke"),
        ("routes", "add", "set"),
        ("chats", "ls", "list"),
    ],
)
def test_a_group_knows_what_others_call_its_commands(
    group: str, typed_word: str, meant: str, sndr: Sndr
) -> None:
    sentence = refused(sndr, group, group, typed_word)
    assert sentence == f"No such command '{typed_word}'. Did you mean `sndr {group} {meant}`?\n"
