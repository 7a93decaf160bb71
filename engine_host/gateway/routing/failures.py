"""The errors of routes and providers: what a request meets that is meant for somebody who cannot answer."""

import shlex
from collections.abc import Mapping
from dataclasses import replace

from engine_host.core.bounds.cut_text import cut_text
from engine_host.core.errors import HostError
from engine_host.core.outside import json_text
from engine_host.gateway.directory import Target
from engine_host.gateway.error_answers import (
    EndpointError,
    engine_ended,
    engine_fault,
    engine_unreachable,
    invalid,
    odd_answer,
)
from engine_host.gateway.routing import elsewhere
from engine_host.gateway.routing.elsewhere import NO_OTHERS, OtherMachines
from engine_host.gateway.upstream import SilentError, UnreachableError, UnreadableError, UpstreamLostError
from engine_host.protocol.endpoint.routes import Route
from engine_host.protocol.errors import Reason

ALLOW_REMOTE = "X-SNDR-Allow-Remote"
"""The header by which a request says that it may leave this machine, or may not."""
_SAID = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
_KEY_REFUSED = {401, 403}
_LONGEST = 500
_OF_PROVIDERS = {
    "/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses", "/v1/messages",
    "/completion",
    "/api/chat", "/api/generate", "/api/embed", "/api/embeddings",
}  # fmt: skip
"""Paths whose requests a provider answers, as they are or as a chat."""
_ANSWERS = ("choices", "data", "content", "output", "object")
"""What an answer has, in any of the forms; one of Responses may have failed and is one still."""
_NOT_TAKEN = frozenset({"engine_unreachable", "draining", "host_not_connected", "host_restarted"})
"""Failures of a replica that took nothing; one that ended at a request might have ended because of it."""


def may_leave(headers: Mapping[str, str]) -> bool | None:
    """Return what a request says of itself; None where it says nothing. Raises EndpointError 400."""
    said = headers.get(ALLOW_REMOTE.lower())
    if said is None:
        return None
    found = _SAID.get(said.strip().lower())
    if found is None:
        raise invalid(f"{ALLOW_REMOTE} is 1, or 0.", param=ALLOW_REMOTE)
    return found


def gives_way(fault: EndpointError) -> bool:
    """Return True for a failure after which another provider, or replica, may be asked for the same."""
    if fault.source == "provider":
        return fault.status >= 500 or fault.status == 429
    return fault.code in _NOT_TAKEN


def not_running(route: Route, others: OtherMachines = NO_OTHERS) -> EndpointError:
    """None of a route's engines runs; nothing else is asked in their place."""
    names = route.targets.engines
    elsewhere_too = [others.advice(name) for name in names if others.means(name)]
    here = [name for name in names if not others.means(name)]
    if elsewhere_too and not here:
        why = " ".join(elsewhere_too)
        return EndpointError(
            503, "route_target_not_running", f"{route.id}: {why}", Reason.NO_ENGINE_RUNS, "model"
        )
    also = "" if route.targets.provider is None else " Its provider is asked only with: fallback."
    return EndpointError(
        503,
        "route_target_not_running",
        f"{route.id} stands for {', '.join(names)}, which does not run. Start it with: "
        f"{' '.join([f'sndr run {shlex.quote(here[0])}', *elsewhere_too])}{also}",
        Reason.NO_ENGINE_RUNS,
        "model",
    )


def loops() -> EndpointError:
    """A request came back that this endpoint itself had sent to a provider."""
    return EndpointError(
        400,
        "route_loops",
        "This request came from this endpoint itself: a route's provider is its own address. Lead the route "
        "to an engine, or to another address. See them with: sndr routes list",
        Reason.CONFLICT,
        "model",
    )


def not_allowed(route: Route, *, by_request: bool = False) -> EndpointError:
    """A route leads out of this program, and nobody has allowed that; or the request itself forbids it."""
    why = (
        f"this request says that it may not leave this machine ({ALLOW_REMOTE})."
        if by_request
        else "requests may not leave this machine for it. Allow it with: sndr routes set "
        f"{shlex.quote(route.id)} --allow-remote; or for one request by its header {ALLOW_REMOTE}: 1"
    )
    whither = "another machine" if route.targets.provider is None else "a provider"
    return EndpointError(
        403,
        "remote_not_allowed",
        f"{route.id} leads to {whither}, and {why}",
        Reason.REMOTE_NOT_ALLOWED,
        "model",
    )


def no_key(route: Route, error: HostError) -> EndpointError:
    """The key of a route's provider is not where the route says."""
    return EndpointError(
        503,
        "provider_key_missing",
        f"{route.id}: {error.problem.sentence()}",
        Reason.UNAUTHORIZED,
    )


def provider_refusal(target: Target, status: int, body: bytes) -> EndpointError:
    """A provider's refusal with its status, in the caller's form; its key stands in none of it.

    A refused key is no fault of the client's own key, so it gets another status than the provider's.
    """
    body = hidden(target, body)
    if status in _KEY_REFUSED and target.machine is not None:
        return elsewhere.restarted(target)
    if status in _KEY_REFUSED:
        return EndpointError(
            502,
            "provider_refused_key",
            f"{target.provider} refused the key of {target.name} with status {status}. See: sndr routes list",
            Reason.PROVIDER_FAILED,
            source="provider",
            extra={"provider_status": status},
        )
    fault = engine_fault(status, body)
    if fault.code == "no_engine_runs" and target.machine is not None:
        return elsewhere.not_running(target)
    fault.source = "provider" if target.machine is None else "engine"
    fault.message = f"{target.provider} answered {status}: {cut_text(fault.message, _LONGEST)}"
    fault.extra = {**fault.extra, "provider_status": status}
    if fault.reason is Reason.ENGINE_CRASHED:
        fault.reason = Reason.PROVIDER_FAILED
    if status == 429:
        fault.reason, fault.retry_after = Reason.QUEUE_FULL, 5
    return fault


def provider_broke_off(target: Target, data: bytes) -> EndpointError:
    """A provider's error in the middle of a stream, in the caller's form; `data` is what its frame holds."""
    fault = engine_fault(500, hidden(target, data))
    if target.machine is None:
        # Another program of this name may be the provider, and speak of itself as this one does.
        fault.source = "provider"
    fault.message = f"{target.provider} broke off its answer for {target.name}: " + cut_text(
        fault.message, _LONGEST
    )
    fault.reason = Reason.PROVIDER_FAILED
    return fault


def check_answer(target: Target, body: bytes) -> None:
    """Refuse an error that a provider sends with the status of an answer; raises EndpointError."""
    if target.provider is None or b'"error"' not in body:
        return
    try:
        answer = json_text.parse_object(body)
    except ValueError:
        return
    error = answer.get("error")
    if not error or any(answer.get(name) for name in _ANSWERS):
        return
    status = error.get("code") if isinstance(error, dict) else None
    if isinstance(status, int) and 400 <= status < 600:
        raise provider_refusal(target, status, body)
    raise replace(provider_broke_off(target, body), status=502)


def whose(target: Target, fault: EndpointError) -> EndpointError:
    """Return a fault of the answer's form as one of who gave it: translations know no providers."""
    if target.provider is None or target.machine is not None or fault.source != "engine":
        return fault
    return unreadable(target) if fault.code == odd_answer().code else replace(fault, source="provider")


def provider_redirected(target: Target, status: int) -> EndpointError:
    """A provider sends requests elsewhere; they and the key go nowhere but where the route says."""
    return EndpointError(
        502,
        "provider_redirected",
        f"{target.provider} sends requests for {target.name} elsewhere (status {status}). That is not "
        "followed: put the address that it means into the route.",
        Reason.PROVIDER_FAILED,
        source="provider",
        extra={"provider_status": status},
    )


def provider_unreachable(target: Target) -> EndpointError:
    """No connection to a provider, or none that can be trusted."""
    if target.machine is not None:
        return elsewhere.unreachable(target)
    return EndpointError(
        502,
        "provider_unreachable",
        f"{target.provider}, which answers for {target.name}, takes no connection, or shows no certificate "
        "that this machine trusts. Try again, or see where it leads: sndr routes list",
        Reason.PROVIDER_FAILED,
        source="provider",
    )


def provider_ended(target: Target) -> EndpointError:
    """A provider's connection broke before its answer was complete."""
    if target.machine is not None:
        return elsewhere.ended(target)
    return EndpointError(
        502,
        "provider_ended",
        f"{target.provider} ended its answer for {target.name} before it was complete. Try again; "
        "what was seen of it: sndr routes list",
        Reason.PROVIDER_FAILED,
        source="provider",
    )


def provider_silent(target: Target) -> EndpointError:
    """A provider keeps its connection and sends nothing."""
    if target.machine is not None:
        return elsewhere.silent(target)
    return EndpointError(
        504,
        "provider_silent",
        f"{target.provider} has sent nothing for {target.name} for too long, and was given up. Try again; "
        "what was seen of it: sndr routes list",
        Reason.PROVIDER_FAILED,
        source="provider",
    )


def of_lost(target: Target, error: UpstreamLostError, *, stopped: bool) -> EndpointError:
    """Return what a client is told of a connection that gave no whole answer.

    `stopped`: the engine was told to end.
    """
    if isinstance(error, UnreadableError):
        return unreadable(target)
    if target.provider is not None:
        if isinstance(error, UnreachableError):
            return provider_unreachable(target)
        return provider_silent(target) if isinstance(error, SilentError) else provider_ended(target)
    if isinstance(error, UnreachableError):
        return engine_unreachable(target.engine_name)
    return engine_ended(target.engine_name, stopped=stopped)


def unreadable(target: Target) -> EndpointError:
    """An answer that is none of HTTP, or whose status is neither that of an answer nor of an error."""
    if target.provider is None or target.machine is not None:
        return odd_answer()
    return EndpointError(
        502,
        "provider_unreadable",
        f"{target.provider} answered for {target.name} in no form that can be read. Is its address one of "
        "OpenAI's API? See: sndr routes list",
        Reason.PROVIDER_FAILED,
        source="provider",
    )


def check_provider_has(target: Target, path: str) -> None:
    """Refuse a path that no provider has; raises EndpointError 404."""
    if target.provider is not None and path not in _OF_PROVIDERS:
        raise not_there(target, path)


def not_there(target: Target, path: str) -> EndpointError:
    """A path that no provider has."""
    return EndpointError(
        404,
        "route_unsupported",
        f"{target.name} is answered by {target.machine or 'a provider'}, which has no {path} for it: an "
        "engine here counts tokens and fills gaps.",
        Reason.UNSUPPORTED,
    )


def hidden(target: Target, body: bytes) -> bytes:
    """Return a provider's words without the key that it may repeat in them."""
    return body.replace(target.key.encode(), b"***") if target.key else body
