"""Help in which what a command does is said in its whole first sentence."""

import click

_NO_LIMIT = 10_000
"""Characters: click cuts a sentence that is longer than its line, where it could go on in the next one."""


class WholeHelp(click.Group):
    """A group of commands whose list cuts no sentence."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [
            (name, one.get_short_help_str(_NO_LIMIT))
            for name, one in commands
            if one is not None and not one.hidden
        ]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)
