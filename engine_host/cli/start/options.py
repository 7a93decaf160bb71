"""The options of a start that every command which starts a model takes."""

import functools
import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, cast

import click
from pydantic import ValidationError

from engine_host.cli.text.chosen_host import chosen_host
from engine_host.core.did_you_mean import near_names
from engine_host.core.errors import HostError
from engine_host.core.outside import files
from engine_host.protocol.allowed import refusal
from engine_host.protocol.engine_settings.derived import settings_by_option
from engine_host.protocol.engine_settings.table import SETTINGS, Overrides
from engine_host.protocol.errors import Reason
from engine_host.protocol.launch.plans import ALL_ENGINES, EngineKind, LaunchRequest, ServerChoice
from engine_host.protocol.patches import PatchChoice


@dataclass(frozen=True)
class LaunchOptions:
    """The options of a start as they were given; `named` are those of settings, by their parameter."""

    name: str | None
    engine: str
    installation: str | None
    server: str
    without: tuple[str, ...]
    with_: tuple[str, ...]
    only: tuple[str, ...]
    settings: tuple[str, ...]
    env: tuple[str, ...]
    gpu: tuple[str, ...]
    instead_of: tuple[str, ...]
    replace: bool
    named: Mapping[str, Any]

    def request(self, model: str, *, keep: bool = False) -> LaunchRequest:
        """Return the launch request of these options. Raises click.UsageError for a bad setting."""
        values = {
            row.name: self.named.get(_parameter(option))
            for option, rows in settings_by_option().items()
            for row in rows
        }
        return LaunchRequest(
            model=resolved(model) if model else "",
            engine=EngineKind(self.engine),
            server=ServerChoice(self.server),
            installation=resolved(self.installation) if self.installation else None,
            name=self.name,
            overrides=overrides_of(self.settings, **values, variables=self.env or None),
            keep=keep,
            patches=PatchChoice(off=self.without, on=self.with_, only=self.only or None),
            instead_of=self._instead_of,
            gpus=self.gpu,
        )

    @property
    def _instead_of(self) -> tuple[str, ...] | None:
        if self.replace and self.instead_of:
            raise click.UsageError("--replace ends every engine that runs: leave --instead-of out.")
        return (ALL_ENGINES,) if self.replace else self.instead_of or None


def launch_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of a start, handed over as `options`."""
    names = [one.name for one in fields(LaunchOptions) if one.name != "named"]
    named = [_parameter(option) for option in settings_by_option()]

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        given = {name: kwargs.pop(name) for name in names}
        options = LaunchOptions(**given, named={name: kwargs.pop(name) for name in named})
        return function(*args, options=options, **kwargs)

    # The first of the list is the first in --help.
    for option in reversed((_NAME, *_setting_options(), *_OPTIONS)):
        run = option(run)
    return run


def _parameter(option: str) -> str:
    return option.removeprefix("--").replace("-", "_")


def _setting_options() -> Iterator[Callable[..., Any]]:
    """Yield the named options of settings."""
    for option, rows in settings_by_option().items():
        row = rows[0]
        kind = click.IntRange(int(row.low), int(row.high)) if row.kind == "whole" else click.STRING
        text = row.description if len(row.engines) == 1 else row.help[:1].upper() + row.help[1:]
        names = f" (sets {' and '.join(one.name for one in rows)})" if rows[1:] else ""
        yield click.option(option, type=kind, help=f"{text}{names}.".replace("….", "…"))


_NAME = click.option("--name", help="Public model id (default: taken from the model).")
_OPTIONS = (
    click.option(
        "--engine",
        type=click.Choice([kind.value for kind in EngineKind]),
        default="auto",
        show_default=True,
        help="What runs the model; auto: llama.cpp for GGUF, vLLM for safetensors.",
    ),
    click.option(
        "--installation",
        metavar="ID",
        help="vLLM: which environment, e.g. 0.32.0-cpu, or the path of your own.",
    ),
    click.option(
        "--server",
        type=click.Choice([choice.value for choice in ServerChoice if choice is not ServerChoice.VENV]),
        default="auto",
        show_default=True,
        help="Which build of llama.cpp's server.",
    ),
    click.option(
        "--without", multiple=True, metavar="PATCH", help="vLLM: leave out this patch or family, or `all`."
    ),
    click.option("--with", "with_", multiple=True, metavar="PATCH", help="vLLM: add this patch or family."),
    click.option(
        "--only", multiple=True, metavar="PATCH", help="vLLM: nothing but these and what they require."
    ),
    click.option(
        "--set",
        "--override",
        "settings",
        multiple=True,
        metavar="NAME=VALUE",
        help="Any other setting of the start, as the plan names it: threads, draft_tokens, gpu_memory …",
    ),
    click.option(
        "--env",
        multiple=True,
        metavar="NAME=VALUE",
        help="A variable of the engine's processes, a library path too; repeatable.",
    ),
    click.option(
        "--gpu",
        multiple=True,
        metavar="GPU",
        help="Compute on this GPU, by number, name or UUID; repeatable (default: the freest that suffice).",
    ),
    click.option(
        "--instead-of",
        multiple=True,
        metavar="ENGINE",
        help="End this running engine first (its name or id); repeatable. Without it the start runs beside.",
    ),
    click.option("--replace", is_flag=True, help="End every engine that runs first."),
)


def with_option(error: HostError, request: LaunchRequest) -> HostError:
    """The same refusal of a value, naming the option that gave it; any other error as it is."""
    problem, given = error.problem, request.overrides.model_dump(exclude_none=True)
    name = problem.evidence.get("setting")
    if problem.reason is not Reason.SETTING_INVALID or name not in given:
        return error
    if name == "variables":
        # Its message names the one that is meant.
        return HostError.from_problem(problem.model_copy(update={"message": f"--env: {problem.message}"}))
    option = SETTINGS[name].option
    # One option may give several settings the same value; with --set they can differ.
    same = {given.get(row.name) for row in settings_by_option().get(option, ())} == {given[name]}
    option = f"{option} {given[name]}" if option and same else f"--set {name}={given[name]}"
    return HostError.from_problem(problem.model_copy(update={"message": f"{option}: {problem.message}"}))


def overrides_of(settings: tuple[str, ...], **named: object) -> Overrides:
    """Return the overrides of a start; a repeated list setting grows, any other may be given once."""
    values: dict[str, object] = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in named.items()
        if value is not None
    }
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or name not in SETTINGS:
            said = _unknown(name) if equals else f"--set takes NAME=VALUE; {setting!r} has no =."
            raise click.UsageError(said)
        if SETTINGS[name].kind == "words":
            values.setdefault(name, [])
            values[name] = [*cast(list[str], values[name]), *_words(value)]
        elif name in values and str(values[name]) != value:
            flag = SETTINGS[name].option if named.get(name) is not None else "--set"
            raise click.UsageError(
                f"{flag} says that {name} is {values[name]}, and --set {name}={value} says another value: "
                "give one of them."
            )
        else:
            values[name] = value
    try:
        return Overrides.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        raise click.UsageError(
            f"{name} cannot be {first['input']!r}: {refusal(first, Overrides)}."
        ) from error


def _unknown(name: str) -> str:
    near = near_names(name, SETTINGS, 3)
    if near:
        return f"There is no setting {name}. Did you mean {' or '.join(near)}?"
    flag = f"--{name.replace('_', '-')}"
    return (
        f"There is no setting {name}, nor one that is called nearly so. A flag of the engine itself is given "
        f"with --set extra_arguments='{flag} VALUE'; `sndr run MODEL --dry-run` lists the settings."
    )


def _words(value: str) -> list[str]:
    """Split a flag and its values as a shell would; any other text, such as JSON, is one word."""
    if not value.startswith("-") or not any(letter.isspace() for letter in value):
        return [value]
    try:
        return shlex.split(value)
    except ValueError as error:
        raise click.UsageError(f"--set {value!r} is no list of arguments: {error}.") from error


def resolved(model: str) -> str:
    """The absolute path where the text looks like one; the host has another working folder.

    `organisation/model` is a name of the Hugging Face cache, unless there is such a file here.
    """
    if (host := chosen_host()) and not os.path.isabs(model):
        if model.startswith(("~", ".")) or model.endswith(".gguf"):
            raise click.UsageError(f"{model!r} is a path of this machine: give the whole path on {host}.")
        return model
    path = files.expanded(model)
    looks_like_one = (
        model.startswith(("~", ".", os.sep)) or model.endswith(".gguf") or model.count(os.sep) > 1
    )
    if looks_like_one or (os.sep in model and path.exists()):
        return str(path.absolute())
    return model
