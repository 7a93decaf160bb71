"""Groups of commands: help that cuts no sentence, and a list where nothing else is asked."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

_NO_LIMIT = 10_000
"""Characters: click cuts a sentence that is longer than its line, where it could go on in the next one."""


class WholeHelp(click.Group):
    """A group of commands; its word alone is its `alone`, such as a list, where that needs no argument.

    `sections` are titles and the commands below each, for a group that has many.
    """

    def __init__(
        self,
        *args: Any,
        sections: Mapping[str, Sequence[str]] | None = None,
        alone: str = "list",
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.alone = alone
        self.sections = dict(sections or {})

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words behind the group's own."""
        # Completion in a shell asks what could stand there.
        if self.lists_alone and not ctx.resilient_parsing and set(args) <= {"--json"}:
            args = [self.alone, *args]
        return super().parse_args(ctx, args)

    @property
    def lists_alone(self) -> bool:
        """Tell whether the group's word alone says how things are."""
        listing = None if self.invoke_without_command else self.commands.get(self.alone)
        return listing is not None and not any(one.required for one in listing.params)

    def sectioned(self, ctx: click.Context) -> Iterator[tuple[str, list[tuple[str, click.Command]]]]:
        """Yield the commands by their sections; what is in none comes last."""
        found = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        shown = {name: one for name, one in found.items() if one is not None and not one.hidden}
        for title, names in self.sections.items():
            yield title, [(name, shown.pop(name)) for name in names if name in shown]
        if shown:
            yield "Commands", list(shown.items())

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        for title, commands in self.sectioned(ctx):
            with formatter.section(title):
                formatter.write_dl([(name, one.get_short_help_str(_NO_LIMIT)) for name, one in commands])
