"""Commands that are loaded when they are used."""

import click
import pytest

from engine_host.cli.root import root
from engine_host.cli.text.loaded_on_use import LoadedOnUse


def test_each_command_of_the_program_is_found_under_its_name() -> None:
    assert [name for name in root.commands if root.commands[name].name != name] == []


def test_what_is_added_to_a_group_comes_with_it() -> None:
    commands = LoadedOnUse(
        "engine_host.cli", {"status": ("status:status",), "host": ("remote.commands:host",)}
    )
    host = commands["host"]
    assert isinstance(host, click.Group)
    assert {"list", "add"} <= set(host.commands)
    more = LoadedOnUse("engine_host.cli", {"engine": ("engine:engine", "remote.pin:engine_pin")})["engine"]
    assert isinstance(more, click.Group)
    assert "pin" in more.commands


def test_a_name_that_is_none_and_a_command_taken_in() -> None:
    commands = LoadedOnUse("engine_host.cli", {"status": ("status:status",)})
    assert "stat" not in commands
    with pytest.raises(KeyError):
        commands["stat"]
    commands["mine"] = click.Command("mine")
    assert (list(commands), len(commands), commands["mine"].name) == (["status", "mine"], 2, "mine")
    del commands["mine"], commands["status"]
    assert list(commands) == []
