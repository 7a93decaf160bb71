"""All clients, in the order in which they are shown."""

from engine_host.connect.clients.agents import AGENTS
from engine_host.connect.clients.definition import Client
from engine_host.connect.clients.editors import EDITORS
from engine_host.connect.clients.programs import PROGRAMS
from engine_host.core.did_you_mean import near_names
from engine_host.core.errors import HostError
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr

CLIENTS = (*EDITORS, *AGENTS, *PROGRAMS)
_ALSO = {
    "claude-code": "claude", "code": "vscode", "vs-code": "vscode", "roo-code": "roo",
    "openwebui": "open-webui", "ts": "typescript", "node": "typescript", "py": "python",
}  # fmt: skip


def client_named(name: str) -> Client:
    """Return the client of a name. Raises HostError(not_found) with the nearest names."""
    wanted = name.lower()
    wanted = _ALSO.get(wanted, wanted)
    found = next((client for client in CLIENTS if client.name == wanted), None)
    if found is not None:
        return found
    near = near_names(wanted, [client.name for client in CLIENTS])
    known = ", ".join(client.name for client in CLIENTS)
    cause = tr("Near it: {near}.", near=", ".join(near)) if near else tr("There are: {known}.", known=known)
    raise HostError(
        Reason.NOT_FOUND,
        tr("There is no client {name}.", name=f"{name[:100]!r}"),
        cause=cause,
        fix=Fix(text=tr("See which are known."), command="sndr connect"),
    )
