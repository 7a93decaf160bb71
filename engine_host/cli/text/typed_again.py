"""The command that was typed, with all that was given to it."""

import shlex
from collections.abc import Iterator
from typing import Any

import click
from click.core import ParameterSource


def typed_again(*left_out: str) -> str:
    """Return the command line of the command that runs now, without some of its parameters."""
    context = click.get_current_context()
    words = ["sndr", *context.command_path.split()[1:]]
    arguments: list[str] = []
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if name in left_out or not given:
            continue
        value = context.params[name]
        if isinstance(parameter, click.Option):
            words += _option(parameter, value)
        else:
            arguments += [str(one) for one in (value if isinstance(value, tuple) else (value,))]
    # A word that begins with a dash would be read as an option.
    dashed = ["--"] if any(one.startswith("-") for one in arguments) else []
    return shlex.join([*words, *dashed, *arguments])


def _option(option: click.Option, value: Any) -> Iterator[str]:
    if option.is_bool_flag:
        yield (option.opts if value else option.secondary_opts)[0]
        return
    long = next((one for one in option.opts if one.startswith("--")), option.opts[0])
    for one in value if option.multiple else (value,):
        yield from (long, str(one))
