"""The spellings of a flag: `--a_b`, `--a-b=1`, `--a-b.c` and a beginning such as `--a` can be one."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr

_NUMBER = re.compile(r"-(\d|\.\d)[\d.eE+-]*")
_END = re.compile(r"[=\s]")


@dataclass(frozen=True, slots=True)
class FlagReader:
    """An engine's way of reading flags; every engine takes `_` for `-`.

    With `argparse`, Python's library, a beginning that fits one flag stands for it, a dot leads into the JSON
    of one (`--config.key`), and `--no-x` is the opposite of `--x`.
    """

    argparse: bool

    def name(self, word: str) -> str | None:
        """Return the name in one word of a command line; None for a value."""
        if not word.startswith("-") or word.strip("-") == "" or _NUMBER.fullmatch(word):
            return None
        name = _END.split(word, maxsplit=1)[0]
        if self.argparse:
            name = name.partition(".")[0]
        return name.replace("_", "-") if name.startswith("--") else name

    def meant(self, name: str, flags: Collection[str]) -> str | None:
        """Return which of these flags a name means; None for none of them."""
        if name in flags:
            return name
        if not self.argparse:
            return None
        opposite = f"--{name.removeprefix('--no-')}" if name.startswith("--no-") else f"--no-{name[2:]}"
        if name.startswith("--") and opposite in flags:
            return opposite
        # The shortest that begins so: a name that no flag has in full is an abbreviation, or a mistake.
        longer = sorted((flag for flag in flags if flag.startswith(name)), key=lambda flag: (len(flag), flag))
        return longer[0] if longer and len(name) > (2 if name.startswith("--") else 1) else None

    def refuse_owned(self, words: Iterable[str], owned: Mapping[str, str]) -> None:
        """Raise HostError(setting_invalid) for a flag that the program gives itself, however it is spelled.

        `owned` has the setting that says each of them, "" for one that no setting says.
        """
        for word in words:
            name = self.name(word)
            flag = None if name is None else self.meant(name, owned)
            if name is None or flag is None:
                continue
            setting = owned[flag]
            also = (
                ""
                if flag == name == word.partition("=")[0]
                else tr(", which is {flag} in another spelling", flag=flag)
            )
            raise HostError(
                Reason.SETTING_INVALID,
                tr("{name} cannot be an extra argument{also}: this program sets it.", name=name, also=also),
                cause="Given twice, it would not be what the plan says.",
                fix=tr("Use the setting {setting}.", setting=setting) if setting else "Leave it out.",
                evidence={"argument": word, "flag": flag, "setting": setting},
            )


ARGPARSE = FlagReader(argparse=True)
EXACT = FlagReader(argparse=False)
