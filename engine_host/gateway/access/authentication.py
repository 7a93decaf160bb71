"""Check requests: `Host` against DNS rebinding, `Origin` against foreign web pages, and API keys."""

import base64
from collections.abc import Iterable, Mapping

from engine_host.core.addresses import is_address, own_names
from engine_host.core.keys.ring import Key, KeyRing
from engine_host.gateway.error_answers import EndpointError
from engine_host.protocol.endpoint.keys import Permission
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


def check_key(headers: Mapping[str, str], keys: KeyRing, permission: Permission) -> Key | None:
    """Return the key of a request; None without keys, where any will do.

    Raises EndpointError 401 for none or an unknown one, 403 for one that may not do this.
    """
    if not keys.needed:
        return None
    sent = _keys_of(headers)
    # Header values are bytes, which ASGI servers hand on as latin-1; clients write a key in UTF-8 or latin-1.
    known = [keys.find(key.encode("latin-1", "backslashreplace")) for key in sent]
    found = next((key for key in known if key is not None), None)
    if found is None:
        needed = (
            "An API key is needed: Authorization: Bearer KEY, or x-api-key: KEY. "
            "Make one with: sndr keys create NAME"
        )
        unknown = "This key is not known here: it is mistyped, revoked or another host's. See: sndr keys list"
        message = unknown if sent else needed
        raise EndpointError(
            401,
            "invalid_api_key",
            message,
            Reason.UNAUTHORIZED,
            headers=(("www-authenticate", "Bearer"),),
        )
    if not found.may(permission):
        raise EndpointError(
            403,
            "permission_missing",
            f"The key {found.name} may not do this: it needs the permission {permission.value}. "
            f"Make one with: sndr keys create NAME --may {permission.value}",
            Reason.UNAUTHORIZED,
        )
    return found


def _keys_of(headers: Mapping[str, str]) -> list[str]:
    """Return the keys in a request: OpenAI's and Ollama's way, Anthropic's, and a password."""
    scheme, _, rest = headers.get("authorization", "").partition(" ")
    found = [headers.get("x-api-key", "")]
    if scheme.lower() == "bearer":
        found.insert(0, rest.strip())
    elif scheme.lower() == "basic":
        found.insert(0, _password(rest.strip()))
    return [key for key in found if key]


def _password(text: str) -> str:
    """Return the password of HTTP's basic authentication, whatever the user; empty for what is none."""
    try:
        return base64.b64decode(text, validate=True).decode("latin-1").partition(":")[2]
    except ValueError:
        return ""
