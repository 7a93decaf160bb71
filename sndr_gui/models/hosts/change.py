"""The fields of a host that is kept already, and what would change as a diff."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from engine_host.protocol.language import tr
from engine_host.protocol.remote.hosts import ChangeRemoteHost, RemoteHost, RemoteMode

FIELDS: Mapping[str, tuple[str, str]] = {
    "destination": (tr("Address"), tr("user@machine, as for ssh")),
    "model_root": (tr("Models in"), tr("the folder of its models")),
    "address_command": (tr("Address command"), tr("a command of this machine that prints its address")),
    "role": (tr("Role"), "control, ingress or gpu-worker"),
    "rejected": (tr("Not to be done"), tr("what was tried and rejected, and why; another after a semicolon")),
    "tasks": (tr("Left to do"), tr("what is still open; another after a semicolon")),
    "notes": (tr("Notes"), tr("what is to be remembered about it")),
}
"""The texts that are kept of a host: what each is called, and what belongs there."""
_WAYS = {
    RemoteMode.AGENTLESS: tr("nothing is installed there"),
    RemoteMode.ENGINE_HOST: tr("our engine host"),
}


@dataclass(frozen=True)
class ChangeForm:
    """The fields as they are typed, beside what is kept."""

    old: RemoteHost
    texts: Mapping[str, str]
    agentless: bool

    @property
    def mode(self) -> RemoteMode:
        """The way to work with it."""
        return RemoteMode.AGENTLESS if self.agentless else RemoteMode.ENGINE_HOST

    def read(self) -> tuple[ChangeRemoteHost | None, str]:
        """Return what is to be kept, or what is wrong with the first wrong field."""
        said = {name: text.strip() or None for name, text in self.texts.items()}
        try:
            asked = {**said, "destination": said["destination"] or "", "mode": self.mode}
            return ChangeRemoteHost.model_validate(asked), ""
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            caption = FIELDS.get(str(first["loc"][0]), (tr("It"), ""))[0]
            return None, f"{caption}: {str(first['msg']).removeprefix('Value error, ')}."

    @property
    def changed(self) -> Mapping[str, tuple[str, str]]:
        """Each field that would be another one: what it is, and what it would be."""
        found = {}
        for name, text in self.texts.items():
            before = getattr(self.old, name) or ""
            if text.strip() != before:
                found[name] = (before, text.strip())
        return found

    @property
    def diff(self) -> str:
        """The changes as a diff."""
        lines = []
        for name, (before, after) in self.changed.items():
            caption = FIELDS[name][0]
            lines += [f"- {caption}: {line}" for line in before.splitlines()]
            lines += [f"+ {caption}: {line}" for line in after.splitlines()]
        if self.mode is not self.old.mode:
            lines += [f"- Way: {_WAYS[self.old.mode]}", f"+ Way: {_WAYS[self.mode]}"]
        if self.ends_connection:
            lines.append(tr("@ Its connection ends, for it leads elsewhere or is used in another way."))
        return "\n".join(lines)

    @property
    def ends_connection(self) -> bool:
        """True where the change ends a connection that stands."""
        elsewhere = "destination" in self.changed or self.mode is not self.old.mode
        return elsewhere and self.old.connected_at is not None

    @property
    def command(self) -> str:
        """The command that keeps the same."""
        words = ["sndr", "host", "change", self.old.name]
        for name, (_, after) in self.changed.items():
            words += [after] if name == "destination" else [f"--{name.replace('_', '-')}", after]
        if self.mode is not self.old.mode:
            words.append("--agentless" if self.agentless else "--engine-host")
        return shlex.join(words)
