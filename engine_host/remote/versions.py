"""The version of a remote host beside this program's: used as it is where it can be, and said."""

from packaging.version import InvalidVersion, Version

from engine_host import __version__
from engine_host.core.findings.table import finding
from engine_host.protocol.base import PROTOCOL_MINOR
from engine_host.protocol.launch.plans import Finding


def standing(name: str, program: str | None, protocol: str | None) -> tuple[Finding, ...]:
    """Return what is to be said of a host that speaks this protocol's major: it is older, or newer.

    Another major is refused where its socket is asked first.
    """
    if program is None or protocol is None:
        return ()
    there, here = (_version(program), _minor(protocol)), (_version(__version__), PROTOCOL_MINOR)
    if there[0] is None or there == here:
        return ()
    told = program[:40]
    if there < here:
        return (finding("remote.older", host=name, program=told, here=__version__),)
    return (finding("remote.newer", host=name, program=told, here=__version__),)


def _version(program: str) -> Version | None:
    words = program.split()
    try:
        return Version(words[-1]) if words else None
    except InvalidVersion:
        return None


def _minor(protocol: str) -> int:
    _, _, minor = protocol.partition(".")
    return int(minor) if minor.isdecimal() and len(minor) < 6 else 0
