"""Each command shows an example that its own parser takes, of things that there are."""

from collections.abc import Callable
from pathlib import Path

import click
import pytest

from engine_host.cli.status import _KINDS
from engine_host.protocol.engine_settings.table import SETTINGS
from tests.unit.cli.whole.every_command import DOING, examples_of, make_files, parsed, typed

Sndr = Callable[..., tuple[int, str, str]]
TOP = Path(__file__).parents[4]
PRESETS = {path.stem for path in (TOP / "presets/presets").glob("*.yaml")}
PATCHES = {path.parent.name for path in (TOP / "engine_host/overlay/patches").glob("*/patch.toml")}
HARDWARE = {path.stem for path in (TOP / "presets/hardware").glob("*.yaml")}
# A preset of one's own, made by the example of `presets vary`.
OWN = {"coder"}


def values(context: click.Context, name: str) -> list[str]:
    """Return what was typed for a parameter of this name, as a list."""
    given = context.params.get(name)
    return list(given) if isinstance(given, tuple) else [given] if given else []


@pytest.mark.parametrize(("words", "command"), DOING, ids=[words for words, _ in DOING])
def test_its_parser_takes_each_example_and_its_names_are_real(
    words: str, command: click.Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    examples = examples_of(command)
    assert examples, f"sndr {words} has no example"
    for example in examples:
        given = typed(example)
        make_files(given, tmp_path)
        context = parsed(given)
        assert context.command_path == f"sndr {words}", example
        assert set(values(context, "preset")) <= PRESETS | OWN, example
        assert set(values(context, "patch")) <= PATCHES, example
        assert set(values(context, "kinds")) <= set(_KINDS), example
        assert {name.split("x ")[-1] for name in values(context, "hardware")} <= HARDWARE, example
        for option in ("settings", "values"):
            for pair in values(context, option):
                assert "=" not in pair or pair.partition("=")[0] in SETTINGS, example


def test_help_shows_them(sndr: Sndr) -> None:
    code, out, _ = sndr("bench", "compare", "--help")
    assert code == 0
    assert "\n  Examples:\n    sndr bench compare 20261126 latest\n    sndr bench compare stable new" in out
    assert "\n  Example:\n    sndr host unit list gpu\n" in sndr("host", "unit", "list", "--help")[1]
