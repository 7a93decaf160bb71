"""The commands by what they are for, alike in help and README; a group's own word lists."""

from pathlib import Path

import click
import pytest

from engine_host.cli.root import SECTIONS, root
from engine_host.cli.text.whole_help import WholeHelp
from tests.unit.cli.test_commands import Sndr
from tests.unit.cli.whole.every_command import all_commands

ROOT = Path(__file__).resolve().parents[4]
GROUPS = [(words, one) for words, one in all_commands() if isinstance(one, click.Group)]
LISTING = [words for words, one in GROUPS if isinstance(one, WholeHelp) and one.lists_alone]


def test_each_command_stands_in_one_section_of_help_and_readme(sndr: Sndr) -> None:
    named = [name for names in SECTIONS.values() for name in names]
    assert sorted(named) == sorted(root.commands)
    said = sndr("--help")[1]
    assert "\nCommands:" not in said
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = [f"| **{title}** | |" for title in SECTIONS]
    assert [line for line in readme.splitlines() if line in rows] == rows
    for title, commands in root.sectioned(click.Context(root)):
        assert f"\n{title}:\n" in said
        for name, one in commands:
            assert f"| `sndr {name}` | {one.get_short_help_str(10_000)} |\n" in readme, name


def test_each_group_knows_whether_its_word_alone_lists() -> None:
    assert all(isinstance(one, WholeHelp) for _, one in GROUPS)
    assert {"presets", "keys", "routes", "host", "engine", "patches", "chats", "bench"} <= set(LISTING)
    # These say how things are, in place of their help.
    assert {"settings", "telemetry", "gpu", "autostart"} <= set(LISTING)


@pytest.mark.parametrize("words", LISTING)
def test_a_groups_word_alone_means_its_list(words: str) -> None:
    group = dict(GROUPS)[words]
    assert isinstance(group, WholeHelp)
    for more in ([], ["--json"]):
        context = group.make_context(words, list(more))
        assert context._protected_args + context.args == [group.alone, *more]
