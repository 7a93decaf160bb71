"""Take out of a report what is nobody else's: secrets, names of people and machines, addresses."""

import contextlib
import getpass
import ipaddress
import os
import platform
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from engine_host.core.outside.secret_texts import HIDDEN, redacted
from engine_host.core.visible import visible

_SHORTEST_SECRET = 8
_SHORTEST_NAME = 3
# Accounts and machines that many have: their names tell of nobody, and are words of every log.
_GENERAL = frozenset(
    {
        *("root", "user", "users", "admin", "nobody", "ubuntu", "debian", "fedora", "arch", "runner"),
        *("home", "local", "localhost", "host", "linux", "server", "build", "docker", "podman", "python"),
        *("sndr", "vllm", "llama", "cuda", "gpu", "cpu", "model", "models"),
    }
)
_SECRET_NAME = re.compile(
    r"(?:^|[^a-z])(?:api[-_]?)?(?:keys?|token|secret|credentials?|authorization|cookie|signature)$"
    r"|pass(?:word|wd|phrase)",
    re.IGNORECASE,
)
_SECRET_FLAG = re.compile(
    r"--?(?:[a-z0-9]{1,20}[-_]){0,4}(?:key|token|secret|password|passphrase)|-hft", re.IGNORECASE
)
# A colour before a key would hide where the key begins.
_TERMINAL = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]{0,100}[ -/]{0,10}[@-~]|\x1b[\]PX^_][^\x07\x1b\n]{0,4000}(?:\x07|\x1b\\)?"
)
# A report errs on the other side than what is shown of a request: what may be a secret is taken out.
_MORE_SECRETS = (
    (re.compile(r"(?<=\\[nrt])(?:sk-|hf_|sndr-|gh[oprsu]_)[A-Za-z0-9_-]{8,}"), HIDDEN),
    (
        re.compile(
            r"((?<![\w-])--?(?:[a-z0-9]{1,20}[-_]){0,4}(?:key|token|secret|password|passphrase)"
            r"[\"']?[\s=,]{1,3}[\"']?)(?!-)[^\s\"',]{4,}",
            re.IGNORECASE,
        ),
        rf"\1{HIDDEN}",
    ),
    (
        re.compile(
            r"((?:key|token|secret|password|credential)s?\\?[\"']?\s?[:=]\s?)[\[(](?=\s?\\?[\"'])[^\])\n]{4,4000}[\])]",
            re.IGNORECASE,
        ),
        rf"\1{HIDDEN}",
    ),
    (
        re.compile(
            r"(authorization\\?[\"']?\s{0,3}[:=]\s{0,3}\\?[\"']?(?:(?:basic|bearer|token|digest)\s{1,3})?)"
            r"[^\s\"',\\]{6,}",
            re.IGNORECASE,
        ),
        rf"\1{HIDDEN}",
    ),
    (
        re.compile(
            r"([?&;](?:key|sig|signature|token|auth|code|secret|password)=)[^&\s\"'#]+", re.IGNORECASE
        ),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"(://)[^\s/@\"'<>]{1,300}@"), rf"\1{HIDDEN}@"),
)
_KEY_END = re.compile(r"-----END [A-Z0-9 ]{0,30}PRIVATE KEY")
_KEY_LINE = re.compile(r"[A-Za-z0-9+/=]{16,}\s*$")
_OTHER_HOMES = re.compile(r"(/(?:home|Users)/)(?!\[)[^/\s\"':,;<>|\\)\]}]+")
_AT = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-][\w.-]{0,252}")
_V4 = re.compile(r"(?<![\w.])(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?!\.?\w)")
_V6 = re.compile(r"(?<![\w:.])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?![\w:])")
_CARD = re.compile(r"(?<![\w:])(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}(?![\w:])")
_GPU = re.compile(r"(?:GPU|MIG)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


class Mask:
    """Texts and values without secrets and names; the same address has the same number throughout."""

    def __init__(
        self,
        *,
        home: str = "",
        users: Iterable[str] = (),
        hosts: Iterable[str] = (),
        secrets: Iterable[str] = (),
    ) -> None:
        self._home = re.compile(rf"{re.escape(home.rstrip('/'))}(?![\w.-])") if len(home) > 1 else None
        self._secrets = sorted(
            {one for one in secrets if len(one) >= _SHORTEST_SECRET}, key=len, reverse=True
        )
        self._users = _words(users)
        self._host_names: set[str] = set()
        self._hosts: re.Pattern[str] | None = None
        self._numbers: dict[str, dict[str, int]] = {"address": {}, "GPU": {}}
        self.know_hosts(hosts)

    @classmethod
    def of_this_machine(cls, secrets: Iterable[str] = ()) -> "Mask":
        """Return the mask for this person and machine; secrets of the environment are known to it too."""
        names = [os.environ.get(name, "") for name in ("USER", "LOGNAME", "SUDO_USER")]
        # No such user may be known to the system.
        with contextlib.suppress(OSError, KeyError, ImportError):
            names.append(getpass.getuser())
        home = str(Path.home())
        if Path(home).parent.name in {"home", "Users"}:
            names.append(Path(home).name)
        named = (value for name, value in os.environ.items() if _SECRET_NAME.search(name))
        return cls(
            home=home,
            users=[*names, *_full_names()],
            hosts=[platform.node()],
            secrets=[*secrets, *named],
        )

    def know_hosts(self, names: Iterable[str]) -> None:
        """Take out these machines' names from now on, each also by its first part."""
        for name in names:
            place = name.rpartition("@")[2].removeprefix("ssh://")
            self._host_names |= {place, place.partition(".")[0]} if not _V4.fullmatch(place) else set()
        self._hosts = _words(self._host_names)

    def text(self, text: str) -> str:
        """Return a text that steers no terminal, without secrets, names and addresses."""
        text = visible(_TERMINAL.sub("", text).replace("\r\n", "\n"))
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        text = _without_cut_keys(redacted(text))
        for pattern, instead in _MORE_SECRETS:
            text = pattern.sub(instead, text)
        text = _GPU.sub(lambda found: self._numbered("GPU", found[0]), text)
        text = _AT.sub(lambda found: self._numbered("address", found[0]), text)
        for pattern in (_V4, _CARD, _V6):
            text = pattern.sub(lambda found: self._address(found[0]), text)
        if self._home is not None:
            text = self._home.sub("~", text)
        text = _OTHER_HOMES.sub(r"\1[user]", text)
        if self._users is not None:
            text = self._users.sub("[user]", text)
        return text if self._hosts is None else self._hosts.sub("[host]", text)

    def value(self, value: Any, name: str = "") -> Any:
        """Return a value of JSON the same way; a text whose name is that of a secret is hidden as a whole."""
        if isinstance(value, str):
            return HIDDEN if value and _SECRET_NAME.search(name) else self.text(value)
        if isinstance(value, Mapping):
            return self._object(value)
        if isinstance(value, list | tuple):
            return self._list(value, name)
        return value

    def _object(self, value: Mapping[str, Any]) -> dict[str, Any]:
        told = value.get("name")
        found: dict[str, Any] = {}
        for key, one in value.items():
            shown = self.text(str(key))
            while shown in found:
                shown += "'"
            named = told if key == "value" and isinstance(told, str) else str(key)
            found[shown] = self.value(one, named)
        return found

    def _list(self, values: Iterable[Any], name: str) -> list[Any]:
        found: list[Any] = []
        follows = False
        for one in values:
            # Words of a command line: the one after --api-key is the key.
            found.append(HIDDEN if follows and isinstance(one, str) else self.value(one, name))
            follows = isinstance(one, str) and _SECRET_FLAG.fullmatch(one) is not None
        return found

    def _address(self, text: str) -> str:
        if _CARD.fullmatch(text):
            return self._numbered("address", text)
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return text  # A time of day, or a version.
        return text if address.is_loopback or address.is_unspecified else self._numbered("address", text)

    def _numbered(self, kind: str, text: str) -> str:
        """Return what stands for a text, so that two of them can be told apart and one be followed."""
        known = self._numbers[kind]
        return f"[{kind} {known.setdefault(text.lower(), len(known) + 1)}]"


def _words(names: Iterable[str]) -> re.Pattern[str] | None:
    told = {one.strip() for one in names}
    kept = sorted(
        (one for one in told if len(one) >= _SHORTEST_NAME and one.lower() not in _GENERAL),
        key=len,
        reverse=True,
    )
    if not kept:
        return None
    return re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(map(re.escape, kept))})(?![A-Za-z0-9])", re.IGNORECASE)


def _full_names() -> list[str]:
    """Return the person's name as the system's list of users has it."""
    try:
        import pwd  # Not on Windows.

        return [pwd.getpwuid(os.getuid()).pw_gecos.partition(",")[0]]
    except (ImportError, KeyError):
        return []


def _without_cut_keys(text: str) -> str:
    """Hide the lines of a private key whose beginning is not there: the end of a log may begin in one."""
    if _KEY_END.search(text) is None:
        return text
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if _KEY_END.search(line) and HIDDEN not in line:
            before = number - 1
            while before >= 0 and _KEY_LINE.search(lines[before]):
                lines[before] = HIDDEN
                before -= 1
    return "\n".join(lines)
