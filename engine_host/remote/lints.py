"""Looks for what is dangerous or forgotten on a remote host, in facts that were read there."""

import ipaddress
import re
from collections.abc import Iterator, Sequence
from typing import Any

from engine_host.core.findings.table import finding
from engine_host.protocol.endpoint.model_ids import suggested_id
from engine_host.protocol.launch.plans import Finding
from engine_host.protocol.remote.hosts import RemoteEngine, RemoteFacts, RemoteHost

# A root disk with less than both is nearly full.
_LEAST_SHARE, _LEAST_BYTES = 0.1, 20 * 2**30
_MOST_SECONDS_OFF = 5.0
# What has to be there to compile kernels: any of these, and the package that brings one.
_COMPILERS = ((("cc", "gcc", "clang"), "C compiler", "build-essential"), (("ninja",), "ninja", "ninja-build"))
# The options by which engines are given the id that they serve.
_ID_OPTIONS = ("--served-model-name", "--alias", "-a")
_OWN_SOCKET = re.compile(r"plan-[0-9a-f]+\.sock$")
_EVERYWHERE = frozenset({"", "*", "0.0.0.0", "::"})


def lints(host: RemoteHost, facts: RemoteFacts, profile: Sequence[RemoteEngine] = ()) -> tuple[Finding, ...]:
    """Return what a person should know; `profile` is what was kept as the engines' command lines."""
    found = [
        *_of_address(host),
        *_of_disks(host, facts),
        *of_clock(host.name, host.clock_ahead or facts.clock_ahead),
    ]
    found += _of_compilers(host, facts)
    found += [facts.no_gpu] if facts.no_gpu is not None else []
    for engine in facts.engines:
        found += _of_listening(host, engine)
        found += _of_ids(engine)
    return (*found, *_of_profile(host, facts, profile))


def port_of(engine: RemoteEngine) -> int | None:
    """Return the first port that it listens on."""
    return next((port for _, port in map(_split, engine.listens) if port is not None), None)


def ids_of(engine: RemoteEngine) -> tuple[str, ...]:
    """Return the ids that its command line names; vLLM takes several after one option."""
    found: list[str] = []
    words = list(engine.arguments)
    for at, word in enumerate(words):
        option, equals, value = word.partition("=")
        if option not in _ID_OPTIONS:
            continue
        if equals:
            found.append(value)
            continue
        for one in words[at + 1 :]:
            if one.startswith("-"):
                break
            found.append(one)
    return tuple(found)


def _of_address(host: RemoteHost) -> Iterator[Finding]:
    if host.address is not None and _public(host.address):
        yield finding("host.public-address", host=host.name, address=host.address)


def _of_listening(host: RemoteHost, engine: RemoteEngine) -> Iterator[Finding]:
    for listened in engine.listens:
        address, port = _split(listened)
        if port is None:
            continue
        values: dict[str, Any] = {"engine": engine.kind, "pid": engine.pid, "host": host.name, "port": port}
        if address in _EVERYWHERE:
            yield finding("host.open-to-all", **values)
        elif _public(address):
            yield finding("host.open-to-all/public", address=address, **values)


def _of_ids(engine: RemoteEngine) -> Iterator[Finding]:
    for name in ids_of(engine):
        signs = [word for sign, word in ((":", "a colon"), ("/", "a slash")) if sign in name]
        if signs:
            yield finding(
                "host.id-for-clients",
                engine=engine.kind,
                pid=engine.pid,
                id=name,
                sign=" and ".join(signs),
                suggested=suggested_id(name),
            )


def _of_disks(host: RemoteHost, facts: RemoteFacts) -> Iterator[Finding]:
    root = next((disk for disk in facts.disks if disk.is_root), None)
    if root is None:
        return
    if root.holds_models and host.model_root is not None:
        yield finding(
            "host.models-on-root",
            host=host.name,
            folder=host.model_root,
            device=root.device,
            free=root.free,
        )
    if root.free < _LEAST_BYTES and root.free < _LEAST_SHARE * root.total:
        yield finding("host.root-full", host=host.name, device=root.device, free=root.free, total=root.total)


def clock_off(ahead: float | None) -> float:
    """Return by how many seconds a clock is off; 0.0 for what may be the time of the reading itself."""
    return ahead if ahead is not None and abs(ahead) > _MOST_SECONDS_OFF else 0.0


def of_clock(host: str, ahead: float | None) -> Iterator[Finding]:
    """Return what is to be said of a clock that is ahead, or behind where that is negative."""
    if ahead := clock_off(ahead):
        yield finding("host.clock", host=host, seconds=f"{ahead:+.0f}")


def _of_compilers(host: RemoteHost, facts: RemoteFacts) -> Iterator[Finding]:
    # Tools that were not looked for are not missing.
    if not facts.gpus or "tools" not in facts.read_at:
        return
    lacking = [
        (name, package) for any_of, name, package in _COMPILERS if not facts.tools.keys() & set(any_of)
    ]
    if lacking:
        yield finding(
            "host.no-compiler",
            host=host.name,
            programs=[name for name, _ in lacking],
            packages=" ".join(package for _, package in lacking),
        )


def _of_profile(host: RemoteHost, facts: RemoteFacts, profile: Sequence[RemoteEngine]) -> Iterator[Finding]:
    if "engines" not in facts.read_at:
        return
    # Several of a kind may have no port, as our own: those that run as they were kept are found first.
    running, others = list(facts.engines), []
    for kept in profile:
        same = (one for one in running if one.kind == kept.kind and _same(one, kept))
        if (now := next(same, None)) is None:
            others.append(kept)
        else:
            running.remove(now)
    for kept in others:
        there = (one for one in running if (one.kind, port_of(one)) == (kept.kind, port_of(kept)))
        if (now := min(there, key=lambda one: len(changes(kept, one)), default=None)) is None:
            yield finding("host.profile-gone", host=host.name, engine=kept.kind, port=port_of(kept))
        else:
            running.remove(now)
            yield finding("host.profile-drift", host=host.name, engine=kept.kind, changes=changes(kept, now))


def _same(one: RemoteEngine, kept: RemoteEngine) -> bool:
    return _lasting(one.arguments) == _lasting(kept.arguments)


def changes(kept: RemoteEngine, now: RemoteEngine) -> tuple[str, ...]:
    """Return the options that differ, `+` for those that came and `-` for those that went."""
    before, after = _options(_lasting(kept.arguments)), _options(_lasting(now.arguments))
    gone = [f"- {option}" for option in before if option not in after]
    return (*gone, *(f"+ {option}" for option in after if option not in before)) or ("their order",)


def _lasting(words: Sequence[str]) -> list[str]:
    """Return the words without sockets, which have another name at each start of our own engines."""
    return [_OWN_SOCKET.sub("plan.sock", word) for word in words]


def _options(words: Sequence[str]) -> list[str]:
    """Return the words with each option and its values as one."""
    found: list[str] = []
    for word in words:
        if found and not word.startswith("-") and found[-1].startswith("-"):
            found[-1] = f"{found[-1]} {word}"
        else:
            found.append(word)
    return found


def _split(listened: str) -> tuple[str, int | None]:
    """Return address and port of a place to listen on, as `ss` and we write it."""
    address, _, port = listened.rpartition(":")
    address = address.strip("[]").partition("%")[0]
    return address, int(port) if port.isascii() and port.isdigit() and len(port) < 6 else None


def _public(address: str) -> bool:
    try:
        return ipaddress.ip_address(address.strip("[]").partition("%")[0]).is_global
    except ValueError:
        return False
