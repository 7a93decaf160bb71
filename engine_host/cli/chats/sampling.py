"""The options of `sndr chat` that say how an answer is sampled, made from the table."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from engine_host.cli.param_types import FiniteRange
from engine_host.client.chats.sampling import SAMPLING

Function = TypeVar("Function", bound=Callable[..., Any])


def sampling_options(function: Function) -> Function:
    """Give a command an option for each value of the table."""
    for one in reversed(SAMPLING):
        kind: click.IntRange | FiniteRange = (
            click.IntRange(int(one.low), int(one.high)) if one.whole else FiniteRange(one.low, one.high)
        )
        function = click.option(one.option, one.name, type=kind, help=one.help)(function)
    return function
