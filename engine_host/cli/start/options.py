"""The options of a start that every command which starts a model takes."""

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, cast

import click
from pydantic import ValidationError

from engine_host.core.did_you_mean import near_names
from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason
from engine_host.protocol.patches import PatchChoice
from engine_host.protocol.plans import EngineKind, LaunchRequest, Overrides, ServerChoice


@dataclass(frozen=True)
class LaunchOptions:
    """The options of a start from the command line."""

    name: str | None
    context: int | None
    streams: int | None
    kv_type: str | None
    kv_cache_dtype: str | None
    speculation: str | None
    engine: str
    installation: str | None
    server: str
    without: tuple[str, ...]
    with_: tuple[str, ...]
    only: tuple[str, ...]
    settings: tuple[str, ...]

    def request(self, model: str, *, keep: bool = False) -> LaunchRequest:
        """The request that these options make. Raises click.UsageError for a bad setting."""
        overrides = overrides_of(
            self.settings,
            context=self.context,
            streams=self.streams,
            kv_type_k=self.kv_type,
            kv_type_v=self.kv_type,
            kv_cache_dtype=self.kv_cache_dtype,
            speculation=self.speculation,
        )
        return LaunchRequest(
            model=resolved(model) if model else "",
            engine=EngineKind(self.engine),
            server=ServerChoice(self.server),
            installation=resolved(self.installation) if self.installation else None,
            name=self.name,
            overrides=overrides,
            keep=keep,
            patches=PatchChoice(off=self.without, on=self.with_, only=self.only or None),
        )


def launch_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of a start, handed over as `options`."""
    names = [one.name for one in fields(LaunchOptions)]

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        options = LaunchOptions(**{name: kwargs.pop(name) for name in names})
        return function(*args, options=options, **kwargs)

    # The first of the list is the first in --help.
    for option in reversed(_OPTIONS):
        run = option(run)
    return run


_OPTIONS = (
    click.option("--name", help="Public model id (default: taken from the model)."),
    click.option("--context", type=click.IntRange(128), help="Tokens of context for one stream."),
    click.option("--streams", type=click.IntRange(1, 256), help="Requests answered in parallel."),
    click.option("--kv-type", help="Type of the KV cache, for keys and values: f16, q8_0, q4_0 …"),
    click.option("--kv-cache-dtype", help="vLLM: type of the KV cache: auto, fp8, turboquant_k8v4 …"),
    click.option(
        "--speculation",
        help="off; llama.cpp: draft-mtp or an n-gram kind of the server; vLLM: mtp, ngram or JSON.",
    ),
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
)


_FLAGS = {
    "context": "--context",
    "streams": "--streams",
    "kv_type_k": "--kv-type",
    "kv_type_v": "--kv-type",
    "kv_cache_dtype": "--kv-cache-dtype",
    "speculation": "--speculation",
}


def with_option(error: HostError, request: LaunchRequest) -> HostError:
    """The same refusal of a value, naming the option that gave it; any other error as it is."""
    problem, given = error.problem, request.overrides.model_dump(exclude_none=True)
    name = problem.evidence.get("setting")
    if problem.reason is not Reason.SETTING_INVALID or name not in given:
        return error
    # One option gives both; with --set they can be two.
    both = given.get("kv_type_k") == given.get("kv_type_v")
    own = name in _FLAGS and (both or _FLAGS[name] != "--kv-type")
    option = f"{_FLAGS[name]} {given[name]}" if own else f"--set {name}={given[name]}"
    return HostError.from_problem(problem.model_copy(update={"message": f"{option}: {problem.message}"}))


def overrides_of(settings: tuple[str, ...], **named: object) -> Overrides:
    """The overrides of a start; a repeated list setting grows, any other may be given once."""
    values: dict[str, object] = {name: value for name, value in named.items() if value is not None}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or name not in Overrides.model_fields:
            if equals and (near := near_names(name, Overrides.model_fields, 3)):
                raise click.UsageError(f"There is no setting {name}. Did you mean {' or '.join(near)}?")
            known = ", ".join(sorted(Overrides.model_fields))
            raise click.UsageError(f"--set takes NAME=VALUE with one of: {known}; not {setting!r}.")
        if name == "extra_arguments":
            values.setdefault(name, [])
            values[name] = [*cast(list[str], values[name]), value]
        elif name in values and str(values[name]) != value:
            flag = _FLAGS[name] if named.get(name) is not None else "--set"
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
        raise click.UsageError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}.") from error


def resolved(model: str) -> str:
    """The absolute path where the text looks like one; the host has another working folder.

    `organisation/model` is a name of the Hugging Face cache, unless there is such a file here.
    """
    path = Path(model).expanduser()
    looks_like_one = (
        model.startswith(("~", ".", os.sep)) or model.endswith(".gguf") or model.count(os.sep) > 1
    )
    if looks_like_one or (os.sep in model and path.exists()):
        return str(path.absolute())
    return model
