"""Take out of a report what is nobody else's: secrets, names of people and machines, addresses."""

import contextlib
import getpass
import json
import os
import platform
import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from engine_host.client.diagnostics.network_addresses import is_address, without_addresses
from engine_host.client.diagnostics.secret_rows import SUFFIX, without_secrets
from engine_host.core.outside.secret_texts import HIDDEN, redacted
from engine_host.core.visible import visible

_SHORTEST_SECRET = 6
_SHORTEST_NAME = 2
# Accounts and machines that many have: their names tell of nobody, and are words of every log.
_GENERAL = frozenset(
    {
        *("root", "user", "users", "admin", "nobody", "ubuntu", "debian", "fedora", "arch", "runner", "git"),
        *(
            "home",
            "local",
            "localhost",
            "host",
            "hosts",
            "linux",
            "server",
            "build",
            "docker",
            "podman",
            "python",
        ),
        *(
            "sndr",
            "vllm",
            "llama",
            "cuda",
            "gpu",
            "cpu",
            "model",
            "models",
            "ec2-user",
            "github.com",
            "gitlab.com",
        ),
        *(
            "huggingface.co",
            "api",
            "www",
            "http",
            "https",
            "ssh",
            "openai",
            "example",
            "endpoint",
            "engine",
            "*",
        ),
    }
)
# Words of every log that people and machines are named after: taken out where they are a part of a path.
_WORDS = frozenset(
    {
        *(
            "max",
            "min",
            "ray",
            "art",
            "mark",
            "will",
            "bill",
            "page",
            "trace",
            "grant",
            "chase",
            "rob",
            "pat",
            "sky",
        ),
        *(
            "data",
            "cache",
            "log",
            "logs",
            "state",
            "plan",
            "start",
            "name",
            "base",
            "core",
            "main",
            "dev",
            "ops",
            "ai",
        ),
        *(
            "key",
            "token",
            "test",
            "tests",
            "work",
            "ml",
            "llm",
            "run",
            "bench",
            "file",
            "files",
            "node",
            "box",
            "web",
        ),
        *(
            "proxy",
            "router",
            "gateway",
            "cloud",
            "remote",
            "desktop",
            "laptop",
            "workstation",
            "nvidia",
            "amd",
            "intel",
        ),
        *(
            "id",
            "is",
            "in",
            "on",
            "at",
            "to",
            "of",
            "or",
            "no",
            "it",
            "by",
            "we",
            "my",
            "me",
            "us",
            "io",
            "so",
            "mb",
            "gb",
        ),
        *(
            "qwen",
            "gemma",
            "phi",
            "mistral",
            "torch",
            "triton",
            "time",
            "list",
            "open",
            "read",
            "write",
            "type",
            "ready",
        ),
    }
)
# Of names in a joined spelling the parts that make a secret of it: apiKey, PGPASSWORD, hf-token.
_SECRET_NAME = re.compile(
    r"(?:^|[^a-z]|api|auth|access|refresh|session|secret|private|bearer|hf|client|account|csrf|id|user|admin|my)"
    rf"(?:keys?|token|secrets?|credentials?|authorization|cookies?|signature|auth){SUFFIX}$"
    rf"|pass(?:word|wd|phrase|code)|(?:(?:^|_)pa(?:ss|t)|_pwd|session[-_]?id){SUFFIX}$|cookie",
    re.IGNORECASE,
)
_COUNTED = re.compile(rf"(?:key|token){SUFFIX}$", re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SECRET_FLAG = re.compile(
    r"--?(?:[a-z0-9]{1,20}[-_]){0,4}"
    r"(?:(?:api|auth|access|hf|secret|bearer)?(?:keys?|token)|secrets?|passwords?|passwd|passphrase|credentials?|auth)"
    r"|-hft",
    re.IGNORECASE,
)
# A colour before a key would hide where the key begins.
_TERMINAL = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]{0,100}[ -/]{0,10}[@-~]|\x1b[\]PX^_][^\x07\x1b\n]{0,4000}(?:\x07|\x1b\\)?"
)
_KEY_END = re.compile(r"-----END [A-Z0-9 ]{0,30}PRIVATE KEY")
_KEY_LINE = re.compile(r"[A-Za-z0-9+/=]{16,}\s*\Z")
_LONGEST_KEY_LINE = 120
_OTHER_HOMES = re.compile(r"([/\\](?:home|Users|media)(?:/|\\{1,2}))(?!\[)[^/\s\"':,;<>|\\)\]}]+")
_AT = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-][\w.-]{0,252}")
_GPU = re.compile(r"(?:GPU|MIG)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
# By the key of a machine it can be looked up who it is. The sum of a file has other letters.
_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}(?![A-Za-z0-9+/])")
_PLACE = re.compile(
    r"(?:[a-z][a-z0-9+.-]{0,20}://)?(?:(?P<user>[^\s/@]{1,300})@)?(?:\[(?P<v6>[^\]\s]{1,100})\]|(?P<place>[^\s/:@]{0,253}))"
    r"(?::\d{1,5})?(?:[/?#].*)?",
    re.IGNORECASE,
)
_SHORT = 300
_MOST_SEEN = 20_000


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
        self._secrets: list[str] = []
        self._user_names: set[str] = set()
        self._users: re.Pattern[str] | None = None
        self._host_names: set[str] = set()
        self._hosts: re.Pattern[str] | None = None
        self._variable_names: set[str] = set()
        self._variables: re.Pattern[str] | None = None
        self._numbers: dict[str, dict[str, int]] = {"address": {}, "GPU": {}, "fingerprint": {}}
        # Most texts of a report are names of fields and stand in it a thousand times.
        self._seen: dict[tuple[str, str], str] = {}
        self.know_users(users)
        self.know_hosts(hosts)
        self.know_secrets(secrets)

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
        # What names a file that is there is no secret, and would be taken out of every path.
        named = (
            value for name, value in os.environ.items() if is_secret_name(name) and not os.path.exists(value)
        )
        return cls(
            home=home,
            users=[*names, *_full_names()],
            hosts=[platform.node()],
            secrets=[*secrets, *named],
        )

    def know_hosts(self, names: Iterable[str]) -> None:
        """Take out these machines' names: each as it is, its first part, and who logs in there.

        A name is also a destination of ssh, or an address with a scheme, of which the path is no part.
        """
        found: set[str] = set()
        users: set[str] = set()
        for name in names:
            if (parts := _PLACE.fullmatch(name.strip())) is None:
                continue
            users.add((parts["user"] or "").partition(":")[0])
            place = parts["v6"] or parts["place"] or ""
            if not is_address(place) and place.lower() not in _GENERAL:
                first, _, domain = place.partition(".")
                # Of a machine with a domain of its own that too: others are in it. `co.uk` is nobody's.
                own = domain.count(".") > 0 and len(domain) > len("com.au")
                found |= {place, first, domain if own else ""} - {""}
        self.know_users(users)
        if not found <= self._host_names:
            self._host_names |= found
            self._hosts = _words(self._host_names)
            self._seen.clear()

    def know_users(self, names: Iterable[str]) -> None:
        """Take out these people's names."""
        found = set(names)
        if not found <= self._user_names:
            self._user_names |= found
            self._users = _words(self._user_names)
            self._seen.clear()

    def know_secrets(self, secrets: Iterable[str]) -> None:
        """Take out these texts, wherever they stand; one of a few letters would be a part of other words."""
        found = {
            written
            for one in secrets
            if len(one.strip()) >= _SHORTEST_SECRET
            for written in (one, one.strip(), json.dumps(one)[1:-1], shlex.quote(one), quote(one, safe=""))
        }
        # The longest first: one may be a part of another.
        self._secrets = sorted({*self._secrets, *found}, key=len, reverse=True)
        self._seen.clear()

    def know_variables(self, names: Iterable[str]) -> None:
        """Hide the values of these variables of the environment, where they stand beside their names."""
        self._variable_names |= {name for name in names if name}
        if self._variable_names:
            named = "|".join(map(re.escape, sorted(self._variable_names, key=len, reverse=True)))
            self._variables = re.compile(
                rf"((?<![A-Za-z0-9_])(?:{named})\\?[\"']?(?:=|:\s?)\\?)(?:\"[^\"\n]*\"?|'[^'\n]*'?|[^\s\"']+)"
            )
            self._seen.clear()

    def text(self, text: str, name: str = "") -> str:
        """Return a text that steers no terminal, without secrets, names and addresses.

        `name` is that of its field, which may tell a version from an address.
        """
        if len(text) > _SHORT:
            return self._masked(text, name)
        shown = self._seen.get((text, name))
        if shown is None:
            if len(self._seen) > _MOST_SEEN:
                self._seen.clear()
            shown = self._seen[text, name] = self._masked(text, name)
        return shown

    def _masked(self, text: str, name: str) -> str:
        text = visible(_TERMINAL.sub("", text).replace("\r\n", "\n"))
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        if self._variables is not None:
            text = self._variables.sub(rf"\1{HIDDEN}", text)
        # The rows take whole values, of which the other one takes the first word.
        text = _without_cut_keys(redacted(without_secrets(text)))
        text = _FINGERPRINT.sub(lambda found: self._numbered("fingerprint", found[0]), text)
        text = "\n".join(self._without_addresses(line, name) for line in text.split("\n"))
        if self._home is not None:
            text = self._home.sub("~", text)
        text = _OTHER_HOMES.sub(r"\1[user]", text)
        if self._users is not None:
            text = self._users.sub("[user]", text)
        return text if self._hosts is None else self._hosts.sub("[host]", text)

    def _without_addresses(self, line: str, name: str) -> str:
        if "-" in line:
            line = _GPU.sub(lambda found: self._numbered("GPU", found[0]), line)
        if "@" in line:
            line = _AT.sub(lambda found: self._numbered("address", found[0]), line)
        return without_addresses(line, lambda found: self._numbered("address", found), name)

    def value(self, value: Any, name: str = "") -> Any:
        """Return a value of JSON the same way; what has the name of a secret is hidden as a whole."""
        if value is None or isinstance(value, bool):
            return value
        if name in self._variable_names or (is_secret_name(name) and not _is_count(name, value)):
            return HIDDEN if value not in ("", [], (), {}) else value
        if isinstance(value, str):
            return self.text(value, name)
        if isinstance(value, Mapping):
            return self._object(value)
        if isinstance(value, list | tuple):
            return self._list(value, name)
        return value

    def _object(self, value: Mapping[str, Any]) -> dict[str, Any]:
        told = next(
            (value[one] for one in ("name", "key", "variable") if isinstance(value.get(one), str)), None
        )
        found: dict[str, Any] = {}
        for key, one in value.items():
            shown = self.text(str(key))
            while shown in found:
                shown += "'"
            found[shown] = self.value(one, told if key == "value" and told is not None else str(key))
        return found

    def _list(self, values: list[Any] | tuple[Any, ...], name: str) -> list[Any]:
        found: list[Any] = []
        # Of a header its name and its value.
        follows = False
        pair = len(values) == 2
        for one in values:
            # Words of a command line: the one after --api-key is the key.
            found.append(HIDDEN if follows and isinstance(one, str) else self.value(one, name))
            follows = isinstance(one, str) and (
                _SECRET_FLAG.fullmatch(one) is not None or (pair and not found[1:] and is_secret_name(one))
            )
        return found

    def _numbered(self, kind: str, text: str) -> str:
        """Return what stands for a text, so that two of them can be told apart and one be followed."""
        known = self._numbers[kind]
        return f"[{kind} {known.setdefault(text.lower(), len(known) + 1)}]"


def _is_count(name: str, value: Any) -> bool:
    """Return True for a number beside a key or a token: bytes of one, or its place in a vocabulary."""
    return isinstance(value, int | float) and _COUNTED.search(name) is not None


def is_secret_name(name: str) -> bool:
    """Return True for a name of a field or a variable whose value is nobody else's."""
    return _SECRET_NAME.search(_CAMEL.sub("_", name)) is not None


def _words(names: Iterable[str]) -> re.Pattern[str] | None:
    told = {one.strip() for one in names}
    kept = sorted(
        (one for one in told if len(one) >= _SHORTEST_NAME and one.lower() not in _GENERAL),
        key=len,
        reverse=True,
    )
    if not kept:
        return None
    plain = "|".join(re.escape(one) for one in kept if one.lower() not in _WORDS)
    parts = "|".join(re.escape(one) for one in kept if one.lower() in _WORDS)
    found = [rf"(?<![A-Za-z0-9])(?:{plain})(?![A-Za-z0-9])"] if plain else []
    found += [rf"(?<=/)(?:{parts})(?![\w.-])"] if parts else []
    return re.compile("|".join(found), re.IGNORECASE)


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
            # Of a longer line the end alone is looked at.
            while before >= 0 and _KEY_LINE.search(lines[before][-_LONGEST_KEY_LINE:]):
                lines[before] = HIDDEN
                before -= 1
    return "\n".join(lines)
