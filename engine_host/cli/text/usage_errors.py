"""Errors of what was typed: one sentence each, with the usage of its command and what may have been meant."""

from collections.abc import Iterator, Sequence

import click

from engine_host.core.did_you_mean import is_near, near_names

_MOST = 3
_OTHERS = {
    "delete": ("models remove",),
    "down": ("stop",),
    "download": ("models download",),
    "help": ("--help",),
    "kill": ("stop",),
    "list": ("models", "status"),
    "ls": ("models", "status"),
    "ps": ("status",),
    "pull": ("models download",),
    "rm": ("models remove",),
    "search": ("models search",),
    "start": ("run", "launch", "serve"),
    "up": ("run", "serve"),
}
"""Words of other programs, and what does it here."""
_ALSO_CALLED = {
    "add": ("create", "set", "save"),
    "delete": ("remove", "revoke", "unset"),
    "get": ("show", "download"),
    "ls": ("list",),
    "new": ("create", "add", "set"),
    "pull": ("download",),
    "rm": ("remove", "revoke", "unset"),
}
"""Words for what a group of commands may call otherwise."""
_AS_IT_WAS_INSTALLED = {
    "uninstall": "is removed",
    "update": "is updated",
    "upgrade": "is updated",
}
_ELSEWHERE = "host"
"""Its commands change other machines: none is suggested for a word that did not name it."""


def in_one_sentence(
    error: click.ClickException, root: click.Group, words: Sequence[str]
) -> click.ClickException:
    """Return what `root` raised for words as one sentence that knows its command and names what is near."""
    if isinstance(error, click.NoSuchOption) and error.possibilities:
        typed = error.option_name.lstrip("-")
        error.possibilities[:] = [one for one in error.possibilities if is_near(typed, one.lstrip("-"))]
    if isinstance(error, click.NoSuchCommand):
        return click.UsageError(_no_such_command(error, root), error.ctx)
    if isinstance(error, click.MissingParameter) and isinstance(missing := error.param, click.Parameter):
        return _missing(error, missing)
    if isinstance(error, click.BadOptionUsage) and error.ctx is None:
        # The parser does not say of which command the option is, and so no usage would be shown.
        error.ctx = _command_of(root, words)
    if isinstance(error, click.BadParameter) and isinstance(error.param, click.Parameter):
        kind = error.param.type
        if isinstance(kind, click.IntRange | click.FloatRange):
            return click.BadParameter(_takes(kind), error.ctx, error.param, error.param_hint)
    return error


def _takes(kind: click.IntRange | click.FloatRange) -> str:
    """Return what a number may be: click calls a word "not a valid integer range"."""
    number = "a whole number" if isinstance(kind, click.IntRange) else "a number"
    low, high = (None if end is None else f"{end:,.12g}" for end in (kind.min, kind.max))
    above, below = "above" if kind.min_open else "from", "below" if kind.max_open else "to"
    if low and high:
        return f"it takes {number} {above} {low} {below} {high}."
    if low:
        return f"it takes {number} {'above' if kind.min_open else 'of at least'} {low}."
    return f"it takes {number} {'below' if kind.max_open else 'of at most'} {high}."


def _no_such_command(error: click.NoSuchCommand, root: click.Group) -> str:
    typed = error.command_name
    group = error.ctx.command if error.ctx is not None else root
    assert isinstance(group, click.Group)
    above = error.ctx.command_path if error.ctx is not None else "sndr"
    near = near_names(typed, group.commands, _MOST)
    if not near and group is not root:
        words = near_names(typed, _ALSO_CALLED)
        near = [one for word in words for one in _ALSO_CALLED[word] if one in group.commands][:1]
    if not near and group is root:
        near = [one for word in near_names(typed, _OTHERS) for one in _OTHERS[word]]
        near = near or _elsewhere(root, typed)
    said = f"No such command {typed[:100]!r}."
    if group is root and (done := _AS_IT_WAS_INSTALLED.get(typed.lower())) is not None:
        return f"{said} The program {done} as it was installed: README, Update and uninstall, says how."
    if not near and group is not root:
        return f"{said} `{above}` has {', '.join(sorted(group.commands))}."
    if not near:
        return said
    *before, last = (f"`{above} {one}`" for one in near)
    return f"{said} Did you mean {' or '.join(filter(None, (', '.join(before), last)))}?"


def _elsewhere(root: click.Group, typed: str) -> list[str]:
    """Return the commands of groups whose own word is near, with their groups."""
    found = {path: one for path, one in _below(root, ()) if path[0] != _ELSEWHERE}
    near = near_names(typed, {path[-1] for path in found}, 1)
    return [" ".join(path) for path in found if path[-1] in near][:_MOST]


def _below(group: click.Group, above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name, one in group.commands.items():
        yield (*above, name), one
        if isinstance(one, click.Group):
            yield from _below(one, (*above, name))


def _missing(error: click.MissingParameter, missing: click.Parameter) -> click.ClickException:
    if not isinstance(missing.type, click.Choice):
        return error
    what = f"option {missing.opts[0]}" if isinstance(missing, click.Option) else "argument"
    one_of = ", one of" if len(missing.type.choices) > 1 else ":"
    return click.UsageError(f"Missing {what}{one_of} {', '.join(missing.type.choices)}.", error.ctx)


def _command_of(root: click.Group, words: Sequence[str]) -> click.Context:
    """Return a context of the command that words name."""
    command: click.Command = root
    context = click.Context(root, info_name="sndr")
    left = iter(words)
    for word in left:
        if word == "--host":
            next(left, None)
        elif isinstance(command, click.Group) and not word.startswith("-"):
            if (found := command.commands.get(word)) is None:
                break
            command, context = found, click.Context(found, parent=context, info_name=word)
    return context
