"""Numbers that a person types: `nan` lies within any bounds, for Python, and is no number of anything."""

from collections.abc import Iterator

import click
import pytest

from engine_host.cli.param_types import FiniteRange
from engine_host.cli.root import root
from tests.unit.cli.test_commands import Sndr


def numbers(command: click.Command) -> Iterator[tuple[str, click.ParamType[object]]]:
    """Yield every option and argument below a command whose value has a fraction."""
    if isinstance(command, click.Group):
        for one in command.commands.values():
            yield from numbers(one)
    for param in command.params:
        if isinstance(param.type, click.FloatRange | type(click.FLOAT)):
            yield f"{command.name} {param.name}", param.type


def test_every_number_of_the_command_line_is_finite() -> None:
    found = dict(numbers(root))
    assert len(found) > 10
    assert [name for name, kind in found.items() if not isinstance(kind, FiniteRange)] == []


@pytest.mark.parametrize("said", ["nan", "inf", "-inf", "1e999"])
@pytest.mark.parametrize(
    "words",
    [
        ("doctor", "--minutes"),
        ("top", "--once", "--interval"),
        ("telemetry", "energy", "--minutes"),
        ("presets", "list", "--vram"),
        ("fit", "m", "--gpu"),
    ],
)
def test_what_is_no_finite_number_is_refused_in_a_sentence(
    sndr: Sndr, words: tuple[str, ...], said: str
) -> None:
    code, out, err = sndr(*words, said)
    assert (code, out) == (2, "")
    assert "takes" in err
