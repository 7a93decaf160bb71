"""Bind the endpoint to its configured port, or to the next free one with the reason."""

import errno
import socket
from dataclasses import dataclass

from engine_host.core.addresses import address_from_here, is_loopback, port_owner
from engine_host.core.errors import HostError
from engine_host.core.findings.table import finding
from engine_host.core.likely_causes import foreign_address, taken_port
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import Finding

_TRIES = 50


@dataclass(frozen=True)
class Bound:
    """A listening socket's address; `finding` says why the port is not the wanted one."""

    socket: socket.socket
    host: str
    port: int
    finding: Finding | None = None


def bind_endpoint(host: str, configured_port: int, *, has_keys: bool = False) -> Bound:
    """Bind the endpoint's socket (not yet listening); the next free port when the wanted one is taken.

    Raises HostError setting_invalid for an address that the network can reach while no key is configured,
    and for an address that this machine does not have; port_in_use when no port nearby is free.
    """
    if not is_loopback(host) and not has_keys:
        raise HostError(
            Reason.SETTING_INVALID,
            tr("The endpoint is not opened on {host}: anybody in the network could use it.", host=host),
            cause="No API key is configured.",
            fix=Fix(text="Add an API key first, or use 127.0.0.1.", command="sndr keys create NAME"),
            evidence={"host": host},
        )
    last = min(configured_port + _TRIES, 65535)
    for port in range(configured_port, last + 1):
        bound = _bind(host, port)
        if bound is not None:
            actual = bound.getsockname()[1]
            moved = configured_port not in {0, actual}
            finding = _moved(host, configured_port, actual) if moved else None
            return Bound(bound, host, actual, finding)
    raise HostError(
        Reason.PORT_IN_USE,
        tr(
            "No port from {configured_port} to {last} is free on {host}.",
            configured_port=configured_port,
            last=last,
            host=host,
        ),
        cause=taken_port(),
        fix="Choose another port in the settings.",
        evidence={"host": host, "port": configured_port},
    )


def _bind(host: str, port: int) -> socket.socket | None:
    """A bound socket, or None when the port is taken; raises HostError for an impossible address."""
    address = host.strip("[]")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    candidate = socket.socket(family, socket.SOCK_STREAM)
    try:
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        candidate.bind((address, port))
        # A second socket may bind beside one that listens; only listening tells.
        candidate.listen(128)
    except OSError as error:
        candidate.close()
        # A port below 1024 is refused for want of rights; the next ones will be too.
        if error.errno == errno.EADDRINUSE:
            return None
        raise HostError(
            Reason.SETTING_INVALID,
            tr(
                "The endpoint cannot listen on {host}:{port}: {error}.",
                host=host,
                port=port,
                error=error.strerror or error,
            ),
            cause=foreign_address(),
            fix="Choose an address of this machine and a port above 1023 in the settings.",
            evidence={"host": host, "port": port, "errno": error.errno},
        ) from error
    candidate.setblocking(False)
    return candidate


def url_host(address: str) -> str:
    """An address as it stands in a URL."""
    return f"[{address}]" if ":" in address and not address.startswith("[") else address


def _moved(host: str, configured: int, actual: int) -> Finding:
    owner = port_owner(configured)
    by = f"{owner[0]} (pid {owner[1]})" if owner else "another program"
    url = f"http://{url_host(address_from_here(host))}:{actual}/v1"
    return finding(
        "port_in_use",
        wanted=configured,
        port=actual,
        by=by,
        url=url,
        process=owner[0] if owner else None,
        pid=owner[1] if owner else None,
    )
