"""Check requests: `Host` against DNS rebinding, `Origin` against foreign web pages, and API keys."""

import hmac
from collections.abc import Iterable, Mapping

from engine_host.core.addresses import is_address, own_names
from engine_host.gateway.error_answers import EndpointError
from engine_host.protocol.errors import Reason

LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})


def host_name(header: str) -> str:
    """The name in a `Host` header, without port and brackets, in lower case."""
    value = header.strip().lower()
    if value.startswith("["):
        return value[1:].partition("]")[0]
    return value.rpartition(":")[0] if value.count(":") == 1 else value


def check_host(header: str | None, allowed: Iterable[str], *, has_keys: bool = False) -> None:
    """Refuse a request for a name this endpoint does not answer to; raises EndpointError 403.

    A web page can point its own name at 127.0.0.1 and read the answers; its name is then what `Host` says.
    That works with names alone, never with the number of an address: where a key is asked for anyway, every
    number passes (a router or a container may pass on an address that this machine does not know), and so
    does the name of the machine itself.
    """
    name = host_name(header or "")
    if name in LOOPBACK_HOSTS or name in _names(allowed):
        return
    if has_keys and (is_address(name) or name in own_names()):
        return
    instead = "use this machine's address or its own name" if has_keys else "use 127.0.0.1"
    raise EndpointError(
        403,
        "host_not_allowed",
        f"This endpoint does not answer to the name {name[:200]!r}. Add it to the allowed host names in the "
        f"settings (endpoint.allowed_hosts), or {instead}.",
        Reason.UNAUTHORIZED,
    )


def check_origin(header: str | None, allowed: Iterable[str]) -> str | None:
    """The origin of a web page that was named in the settings, and may read answers; else None.

    Refuses a request that a foreign web page makes; raises EndpointError 403. A browser sends a page's plain
    POST without asking first, so the work would be done although the page cannot read the answer. Pages of
    this machine may make one, and read its answer once they are named. Programs that are no browser send no
    `Origin` at all.
    """
    if header is None:
        return None
    origin = header.strip()
    scheme, _, rest = origin.partition("://")
    name = host_name(rest)
    if scheme and name:
        entries = tuple(allowed)
        if _as_origin(origin) in map(_as_origin, entries) or name in _names(entries):
            return origin
        if name in LOOPBACK_HOSTS:
            return None
    raise _not_named(origin)


def check_preflight(named: str | None, header: str | None) -> None:
    """Refuse the question of a browser on behalf of a page that nobody named; raises EndpointError 403."""
    if named is None:
        raise _not_named(header or "")


def _not_named(origin: str) -> EndpointError:
    return EndpointError(
        403,
        "origin_not_allowed",
        f"This endpoint does not answer to web pages of {origin[:200]!r}. If such a page may use the models "
        "here, name it in the settings: sndr settings set endpoint.allowed_hosts ORIGIN, such as "
        "https://chat.example.org.",
        Reason.UNAUTHORIZED,
    )


def _names(allowed: Iterable[str]) -> frozenset[str]:
    """The allowed host names; an entry with a scheme is the origin of a page, and no name of ours."""
    return frozenset(host_name(entry) for entry in allowed if "://" not in entry)


def _as_origin(text: str) -> str:
    return text.strip().rstrip("/").lower()


def _as_bytes(key: str) -> set[bytes]:
    """Return the bytes that a client may send for a key; a letter that latin-1 lacks leaves UTF-8 alone."""
    try:
        return {key.encode(), key.encode("latin-1")}
    except UnicodeEncodeError:
        return {key.encode()}


def check_key(headers: Mapping[str, str], keys: frozenset[str]) -> None:
    """Refuse a request without one of the keys; without keys any will do; raises EndpointError 401."""
    if not keys:
        return
    candidate = headers.get("x-api-key", "")
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and bearer:
        candidate = bearer.strip()
    # Every key is compared, whichever fits, so that the time tells nothing.
    # Header values are bytes, which ASGI servers hand on as latin-1; clients write a key in UTF-8 or latin-1.
    raw = candidate.encode("latin-1", "backslashreplace")
    known = [form for key in sorted(keys) for form in _as_bytes(key)]
    fits = [hmac.compare_digest(raw, key) for key in known]
    if any(fits):
        return
    message = (
        "This key is not known here." if candidate else "An API key is needed: Authorization: Bearer KEY."
    )
    raise EndpointError(
        401,
        "invalid_api_key",
        message,
        Reason.UNAUTHORIZED,
        headers=(("www-authenticate", "Bearer"),),
    )
