"""The engine that a command is about where none was named: the only one, or a question."""

from collections.abc import Sequence

import click

from engine_host.protocol.engines import Engine, EngineState

GONE = frozenset({EngineState.UNLOADED, EngineState.FAILED})


def only_one(engines: Sequence[Engine], how: str) -> Engine | None:
    """Return the engine where there is but one; None without any.

    `how` says how one is named. Raises click.UsageError, which lists them, for several.
    """
    if len(engines) > 1:
        names = [engine.name for engine in engines]
        # Two of one name are told apart by their ids.
        listed = [one.name if names.count(one.name) == 1 else f"{one.name} ({one.id})" for one in engines]
        raise click.UsageError(f"Several engines run: {', '.join(listed)}. {how}")
    return next(iter(engines), None)
