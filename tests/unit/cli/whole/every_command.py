"""All commands of `sndr`, and the examples of their help as the words that a shell makes of them."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click

from engine_host.cli.root import root

_FILE = re.compile(r"[\w/]+\.(json|jsonl|yaml|gguf)")


def all_commands(group: click.Group = root, above: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield each command, and each group, with its words behind `sndr`."""
    for name, one in group.commands.items():
        words = f"{above} {name}".strip()
        yield words, one
        if isinstance(one, click.Group):
            yield from all_commands(one, words)


def does_something(command: click.Command) -> bool:
    """Tell a command from a group that only holds others."""
    return not isinstance(command, click.Group) or command.invoke_without_command


DOING = tuple((words, one) for words, one in all_commands() if does_something(one))
NAMES = tuple(words for words, _ in DOING)


def examples_of(command: click.Command) -> tuple[str, ...]:
    """Return the examples of a command, as its help shows them."""
    return tuple(getattr(command.callback, "examples", ()))


def typed(example: str) -> list[str]:
    """Return what `sndr` is given by a line of a shell."""
    words = shlex.split(example, comments=True)
    if words[0] == "eval":
        words = shlex.split(words[1].removeprefix("$(").removesuffix(")"))
    if "|" in words:
        words = words[words.index("|") + 1 :]
    if ">" in words:
        words = words[: words.index(">")]
    assert words[0] == "sndr", example
    return words[1:]


def make_files(words: list[str], folder: Path) -> None:
    """Make the files that words name, empty, below a folder."""
    for word in words:
        if _FILE.fullmatch(word):
            (folder / word).parent.mkdir(parents=True, exist_ok=True)
            (folder / word).touch()


def parsed(words: list[str]) -> click.Context:
    """Have the parsers read words; the context of the command that they reach. Raises ClickException."""
    context = root.make_context("sndr", words)
    command: click.Command = root
    while isinstance(command, click.Group) and (left := [*context._protected_args, *context.args]):
        name, found, left = command.resolve_command(context, left)
        assert found is not None
        context, command = found.make_context(name, left, parent=context), found
    return context
