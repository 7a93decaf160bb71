"""By which names and addresses this machine is reached, and whether an address is its own."""

import errno
import ipaddress
import socket

import psutil

from engine_host.core.errors import HostError
from engine_host.core.likely_causes import foreign_address, kept_port, taken_port
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr

_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
# Of the ranges for documentation: a route to them is looked up, nothing is ever sent.
_ELSEWHERE = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}


def is_address(name: str) -> bool:
    """Return True for a numeric IP address, which nobody can point elsewhere by DNS."""
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Return True for an address that only this machine can reach."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def own_names() -> frozenset[str]:
    """The names that this machine has by itself, in lower case: its host name, with `.local` too."""
    name = socket.gethostname().lower()
    short = name.partition(".")[0]
    return frozenset({name, short, f"{short}.local"} - {"", ".local"})


def address_from_here(bound: str) -> str:
    """The address by which programs of this machine reach what listens on `bound`."""
    return _EVERYWHERE.get(bound.strip("[]"), bound)


def address_from_network(bound: str) -> str:
    """The address by which other machines reach what listens on `bound`; loopback without a network."""
    address = bound.strip("[]")
    if address not in _EVERYWHERE:
        return bound
    families = [socket.AF_INET6, socket.AF_INET] if address == "::" else [socket.AF_INET]
    for family in families:
        if found := _routed(family) or _of_interface(family):
            return found
    return _EVERYWHERE[address]


def _routed(family: socket.AddressFamily) -> str | None:
    """The own address on the way out; None where there is no way."""
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((_ELSEWHERE[family], 9))
        except OSError:
            return None
        return str(probe.getsockname()[0])


def _of_interface(family: socket.AddressFamily) -> str | None:
    """The first address of an interface that other machines can reach."""
    for addresses in psutil.net_if_addrs().values():
        for entry in addresses:
            if entry.family == family and _reachable(entry.address):
                return entry.address
    return None


def _reachable(address: str) -> bool:
    number = ipaddress.ip_address(address)
    return not (number.is_loopback or number.is_link_local)


def check_own(host: str, port: int = 0) -> None:
    """Refuse what this machine cannot listen on; may ask the name service.

    Raises HostError setting_invalid for a name that is not known and for the address of another machine,
    port_in_use for a port (0: any) that is taken.
    """
    address = host.strip("[]")
    try:
        found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise HostError(
            Reason.SETTING_INVALID,
            tr("{host} is no address of this machine: the name cannot be resolved.", host=repr(host)),
            cause="It is misspelt, or neither the hosts file nor a name server knows it.",
            fix=_own(),
            evidence={"host": host, "errno": getattr(error, "errno", None)},
        ) from error
    family, kind, _, _, place = found[0]
    with socket.socket(family, kind) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(place)
            # A second socket may bind beside one that listens; only listening tells.
            probe.listen(1)
        except OSError as error:
            raise _bind_error(host, port, error) from error


def _bind_error(host: str, port: int, error: OSError) -> HostError:
    evidence = {"host": host, "port": port, "errno": error.errno}
    if error.errno == errno.EADDRINUSE:
        owner = port_owner(port)
        by = tr("{owner} (pid {owner2})", owner=owner[0], owner2=owner[1]) if owner else tr("another program")
        return HostError(
            Reason.PORT_IN_USE,
            tr("Port {port} is used by {by}.", port=port, by=by),
            cause=taken_port(),
            fix=tr("Choose another port, or end {by} and try again.", by=by),
            evidence=evidence,
        )
    if error.errno == errno.EACCES:
        return HostError(
            Reason.SETTING_INVALID,
            tr("The system does not let you use port {port}.", port=port),
            cause=kept_port(),
            fix="Choose a port above 1023.",
            evidence=evidence,
        )
    why = "" if error.errno == errno.EADDRNOTAVAIL else f" ({error.strerror or error})"
    return HostError(
        Reason.SETTING_INVALID,
        tr("{host} is no address of this machine{why}.", host=host, why=why),
        cause=foreign_address(),
        fix=_own(),
        evidence=evidence,
    )


def _own() -> str:
    own = [
        entry.address
        for addresses in psutil.net_if_addrs().values()
        for entry in addresses
        if entry.family in _ELSEWHERE and not ipaddress.ip_address(entry.address).is_link_local
    ]
    return tr("Its own are {dict}; 0.0.0.0 stands for all of them.", dict=", ".join(dict.fromkeys(own)))


def port_owner(port: int) -> tuple[str, int] | None:
    """Return the name and pid of the process that listens on a TCP port; None if the system does not tell."""
    try:
        connections = psutil.net_connections(kind="tcp")
    except (psutil.Error, OSError):
        return None
    for connection in connections:
        if connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port:
            if connection.pid is None:
                return None
            try:
                return psutil.Process(connection.pid).name(), connection.pid
            except psutil.Error:
                return None
    return None
