"""Options that say where a route leads, for making one and for moving one."""

import functools
from collections.abc import Callable
from typing import Any

import click

from engine_host.core.errors import HostError
from engine_host.protocol.endpoint.routes import NextProvider, Provider, RouteTargets
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr

_OPTIONS = (
    click.argument("engines", nargs=-1, metavar="[ENGINE]..."),
    click.option("--provider", "url", metavar="URL", help="The base URL of an OpenAI-compatible server."),
    click.option("--model", metavar="NAME", help="The model's name at the provider."),
    click.option("--key-env", "key_variable", metavar="NAME", help="The host's variable with its key."),
    click.option("--key-file", metavar="PATH", help="The file with its key, mode 0600."),
    click.option("--context", type=int, metavar="TOKENS", help="Tokens that one request there may use."),
    click.option("--slots", type=int, metavar="N", help="Requests sent there at a time (8)."),
    click.option("--tools/--no-tools", default=None, help="The model there calls tools (yes)."),
    click.option("--images/--no-images", default=None, help="It takes pictures (no)."),
    click.option("--embeddings/--no-embeddings", default=None, help="It makes embeddings, no texts (no)."),
    click.option(
        "--allow-remote/--no-allow-remote", default=None, help="Requests may go to the provider (no)."
    ),
    click.option(
        "--fallback/--no-fallback", default=None, help="Ask the provider while no engine runs (no)."
    ),
    click.option("--next", "as_next", is_flag=True, help="One more provider, asked where those before fail."),
    click.option("--no-next", is_flag=True, help="Leave all further providers out from now on."),
    click.option("--no-key", is_flag=True, help="Ask without a key from now on."),
    click.option("--no-engines", is_flag=True, help="Leave the engines out from now on."),
    click.option("--no-provider", is_flag=True, help="Leave the provider out from now on."),
)
_KEYS = ("key_variable", "key_file")
_SWITCHES = ("as_next", "no_next", "no_key", "no_engines", "no_provider")
_OF_PROVIDER = (
    "url",
    "model",
    "key_variable",
    "key_file",
    "context",
    "slots",
    "tools",
    "images",
    "embeddings",
)


def where_it_leads(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that say where a route leads, as one dictionary `where`."""

    @functools.wraps(function)
    def run(*args: Any, **given: Any) -> Any:
        names = ("engines", *_OF_PROVIDER, "allow_remote", "fallback", *_SWITCHES)
        where = {name: given.pop(name) for name in names}
        return function(*args, where=where, **given)

    decorated: Callable[..., Any] = run
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def targets_of(where: dict[str, Any], old: RouteTargets | None) -> RouteTargets:
    """Return what options say, over what a route led to. Raises HostError(bad_request) for half of it."""
    if where["as_next"]:
        return _with_next(where, old)
    given = {name: where[name] for name in _OF_PROVIDER if where[name] is not None}
    before = old.provider if old is not None else None
    if where["no_provider"]:
        before, given = None, {}
    provider = before
    if given or (where["no_key"] and before is not None):
        known = before.model_dump() if before is not None else {}
        if where["no_key"] or given.get("url", known.get("url")) != known.get("url"):
            # A key is for the address that it was given for, and goes to no other unless that is said.
            known = {name: value for name, value in known.items() if name not in _KEYS}
        if "key_variable" in given:
            known.pop("key_file", None)
        if "key_file" in given:
            known.pop("key_variable", None)
        whole = {**known, **given}
        missing = [
            option
            for name, option in (("url", "--provider"), ("model", "--model"), ("context", "--context"))
            if whole.get(name) is None
        ]
        if missing:
            raise HostError(
                Reason.BAD_REQUEST,
                tr("A provider needs {missing} too.", missing=" and ".join(missing)),
                cause="Its base URL, its name for the model and the tokens of one request are not guessed.",
                fix=Fix(text="Give them all, as in:", command=_EXAMPLE),
            )
        provider = Provider(**whole)
    kept = old.engines if old is not None and not where["no_engines"] else ()
    engines = tuple(where["engines"]) or kept
    if not engines and provider is None:
        raise HostError(
            Reason.BAD_REQUEST,
            "A route leads to an engine or to a provider, and none is named.",
            cause="Requests for its id would reach nobody.",
            fix=Fix(text="Name an engine, a preset or a model.", command="sndr routes set ID ENGINE"),
        )
    if where["fallback"] and not (engines and provider is not None):
        raise HostError(
            Reason.BAD_REQUEST,
            "--fallback is for a route with engines and a provider.",
            cause="It has the provider asked while no engine runs, so there must be both.",
            fix=Fix(text="Name both, as in:", command=f"{_EXAMPLE} --fallback ENGINE"),
        )
    switches = {name: where[name] for name in ("allow_remote", "fallback")}
    if switches["allow_remote"] is None:
        switches["allow_remote"] = old is not None and old.allows(provider)
    if switches["fallback"] is None:
        switches["fallback"] = old is not None and old.fallback
    if switches["fallback"] and where["fallback"] is None and (provider is None or not engines):
        switches["fallback"] = False
    dropped = where["no_next"] or provider is None or old is None
    further = () if dropped or old is None else old.further
    return RouteTargets(engines=engines, provider=provider, further=further, **switches)


def _with_next(where: dict[str, Any], old: RouteTargets | None) -> RouteTargets:
    """Return a route's targets with one more provider at the end, or with another permission for one."""
    if old is None or old.provider is None:
        raise HostError(
            Reason.BAD_REQUEST,
            "--next is for a route that has a provider.",
            cause="It adds one that is asked after those that the route has.",
            fix=Fix(text="Name its first provider without --next.", command=_EXAMPLE),
        )
    alone = {**where, "engines": (), "as_next": False, "no_engines": False, "fallback": None}
    known = next(
        (
            one
            for one in old.further
            if (one.provider.url, one.provider.model) == (where["url"], where["model"])
        ),
        None,
    )
    before = (
        RouteTargets(provider=known.provider, allow_remote=known.allow_remote) if known is not None else None
    )
    made = targets_of(alone, before)
    assert made.provider is not None
    added = NextProvider(provider=made.provider, allow_remote=made.allow_remote)
    others = tuple(added if one is known else one for one in old.further)
    further = others if known is not None else (*others, added)
    return old.model_copy(update={"further": further})


_EXAMPLE = (
    "sndr routes set coder --provider https://HOST/v1 --model NAME --context 131072 --key-env NAME "
    "--allow-remote"
)
