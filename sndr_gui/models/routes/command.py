"""The command of `sndr routes` that leads a route where a dialog says."""

from __future__ import annotations

import shlex

from engine_host.protocol.endpoint.routes import NextProvider, Provider, RouteTargets

_SLOTS = 8
_FLAGS = {"tools": True, "images": False, "embeddings": False}


def command_for(action: str, route_id: str, targets: RouteTargets, before: RouteTargets | None) -> str:
    """Return the command that leads a route there, from where it led.

    There are several, one after the other, where further providers are new or have another order.
    """
    name = route_id or "ID"
    known = before.further if before is not None and targets.provider is not None else ()
    kept = targets.further[: len(known)] == known
    words = _first(targets, before) + ([] if kept or targets.provider is None else ["--no-next"])
    added = targets.further[len(known) :] if kept else targets.further
    commands = [words] if words or not added else []
    commands += [["--next", *_provider(one.provider, None), *_allowed(one)] for one in added]
    return " && ".join(shlex.join(["sndr", "routes", action, name, *one]) for one in commands)


def _first(targets: RouteTargets, before: RouteTargets | None) -> list[str]:
    """Return the words for the engines and for the first provider."""
    words = [*targets.engines]
    if before is not None and targets.engines == before.engines and targets.further != before.further:
        # They are kept; the commands after it name no engines either.
        words = []
    if not targets.engines and before is not None and before.engines:
        words.append("--no-engines")
    provider, old = targets.provider, before.provider if before is not None else None
    if provider is None and old is not None:
        words.append("--no-provider")
    elif provider is not None and provider != old:
        words += _provider(provider, old)
    allowed = before is not None and before.allows(provider)
    fell_back = before is not None and before.fallback
    for name, value, known in (
        ("allow-remote", targets.allow_remote, allowed),
        ("fallback", targets.fallback, fell_back),
    ):
        if value != known:
            words.append(f"--{name}" if value else f"--no-{name}")
    return words


def _allowed(one: NextProvider) -> list[str]:
    return ["--allow-remote"] if one.allow_remote else []


def _provider(provider: Provider, old: Provider | None) -> list[str]:
    """Return the words for a provider, where another one or none was before."""
    words = ["--provider", provider.url, "--model", provider.model, "--context", str(provider.context)]
    words += ["--key-env", provider.key_variable] if provider.key_variable else []
    words += ["--key-file", provider.key_file] if provider.key_file else []
    had_key = old is not None and (old.key_variable or old.key_file)
    words += ["--no-key"] if had_key and not (provider.key_variable or provider.key_file) else []
    words += ["--slots", str(provider.slots)] if provider.slots != (old.slots if old else _SLOTS) else []
    for name, usual in _FLAGS.items():
        value = getattr(provider, name)
        if value != (getattr(old, name) if old else usual):
            words.append(f"--{name}" if value else f"--no-{name}")
    return words
