"""The fields of a new host on another machine, checked as the host would check them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from pydantic import ValidationError

from engine_host.protocol.language import tr
from engine_host.protocol.remote.hosts import AddRemoteHost, HostCandidate, RemoteMode

_NOT_IN_A_NAME = re.compile(r"[^a-z0-9-]+")


@dataclass(frozen=True)
class HostForm:
    """The fields of a new host, as they are typed."""

    name: str = ""
    destination: str = ""
    agentless: bool = False
    model_root: str = ""
    notes: str = ""

    def read(self) -> tuple[AddRemoteHost | None, str]:
        """Return the host, or what is wrong with the first wrong field."""
        try:
            return (
                AddRemoteHost(
                    name=self.name.strip(),
                    destination=self.destination.strip(),
                    mode=RemoteMode.AGENTLESS if self.agentless else RemoteMode.ENGINE_HOST,
                    model_root=self.model_root.strip() or None,
                    notes=self.notes.strip() or None,
                ),
                "",
            )
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            field = {
                "name": tr("Name"),
                "destination": tr("Address"),
                "model_root": tr("Models in"),
                "notes": tr("Notes"),
            }
            why = str(first["msg"]).removeprefix("Value error, ")
            return None, f"{field.get(str(first['loc'][0]), tr('It'))}: {why}."

    @property
    def command(self) -> str:
        """The command that keeps the same host."""
        words = ["sndr", "host", "add", self.name.strip() or "NAME", self.destination.strip() or "USER@HOST"]
        words += ["--agentless"] if self.agentless else []
        words += ["--model-root", self.model_root.strip()] if self.model_root.strip() else []
        words += ["--notes", self.notes.strip()] if self.notes.strip() else []
        return shlex.join(words)


def suggested_name(destination: str, candidates: tuple[HostCandidate, ...]) -> str:
    """Return a name for a destination: what the ssh configuration suggests, or its host's first part."""
    for one in candidates:
        if one.destination == destination:
            return one.suggested_name
    host = destination.removeprefix("ssh://").rpartition("@")[2].partition(":")[0]
    first = host.partition(".")[0]
    # Of an address of numbers the first alone says nothing.
    host = host if first.isdigit() else first
    return _NOT_IN_A_NAME.sub("-", host.lower()).strip("-")[:63]
