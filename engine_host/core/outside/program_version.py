"""The version that a host tells of its program, beside this one's, by PEP 440."""

from packaging.version import InvalidVersion, Version

from engine_host import __version__

HERE = Version(__version__)


def version_of(program: str) -> Version | None:
    """Return the version in what a host calls its program (`sndr 0.3.0`); None where there is none."""
    words = program.split()
    try:
        return Version(words[-1]) if words else None
    except InvalidVersion:
        return None
