"""Variables in the words of a shell, with values that no shell takes for anything but text."""

from collections.abc import Mapping
from enum import StrEnum


class Shell(StrEnum):
    """A kind of shell."""

    SH = "sh"
    FISH = "fish"
    POWERSHELL = "powershell"

    @classmethod
    def named(cls, name: str) -> "Shell":
        """Return the shell of a program's name; raises ValueError for none that is known."""
        return _ALIASES.get(name) or cls(name)

    @property
    def caption(self) -> str:
        """The shells that read it."""
        return _TITLES[self]


_ALIASES = {"bash": Shell.SH, "zsh": Shell.SH, "dash": Shell.SH, "pwsh": Shell.POWERSHELL}
NAMES = tuple(sorted({*_ALIASES, *(shell.value for shell in Shell)}))
"""The names by which a shell can be asked for."""
_TITLES = {Shell.SH: "bash, zsh, sh", Shell.FISH: "fish", Shell.POWERSHELL: "PowerShell"}


def lines(variables: Mapping[str, str], shell: Shell) -> list[str]:
    """Return one line for each variable; a value `$NAME` is that of another variable."""
    return [_line(name, value, shell) for name, value in variables.items()]


def _line(name: str, value: str, shell: Shell) -> str:
    other = value[1:] if value.startswith("$") and value[1:].isidentifier() else None
    if shell is Shell.SH:
        return f'export {name}="${other}"' if other else f"export {name}={_sh(value)}"
    if shell is Shell.FISH:
        return f"set -gx {name} ${other}" if other else f"set -gx {name} {_fish(value)}"
    return f"$env:{name} = $env:{other}" if other else f"$env:{name} = {_powershell(value)}"


def _sh(value: str) -> str:
    return "'" + value.replace("'", "'\\''") + "'"


def _fish(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _powershell(value: str) -> str:
    # It takes the curly ones for quotes too.
    return "'" + "".join(sign * 2 if sign in "'\u2018\u2019\u201a\u201b" else sign for sign in value) + "'"
