"""The version of a remote host beside this program's: used as it is where it can be, and said."""

from engine_host import __version__
from engine_host.core.findings.table import finding
from engine_host.core.outside.program_version import HERE, version_of
from engine_host.protocol.base import PROTOCOL_MINOR
from engine_host.protocol.launch.plans import Finding


def standing(name: str, program: str | None, protocol: str | None) -> tuple[Finding, ...]:
    """Return what is to be said of a host that speaks this protocol's major: it is older, or newer.

    Another major is refused where its socket is asked first.
    """
    if program is None or protocol is None:
        return ()
    version = version_of(program)
    if version is None:
        return ()
    there, here = (version, _minor(protocol)), (HERE, PROTOCOL_MINOR)
    if there == here:
        return ()
    told = program[:40]
    if there < here:
        return (finding("remote.older", host=name, program=told, here=__version__),)
    return (finding("remote.newer", host=name, program=told, here=__version__),)


def _minor(protocol: str) -> int:
    _, _, minor = protocol.partition(".")
    return int(minor) if minor.isdecimal() and len(minor) < 6 else 0
