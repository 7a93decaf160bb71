"""The operations on remote hosts; `table` has them with all others."""

from typing import Any

from engine_host.protocol.errors import Reason
from engine_host.protocol.operations.definition import Done, Nothing, Operation
from engine_host.protocol.remote.hosts import (
    AddRemoteHost,
    AnswerSshQuestion,
    ChangeRemoteHost,
    HostCandidatePage,
    HostProfile,
    HostSheet,
    KeepProfile,
    RemoteFacts,
    RemoteHost,
    RemoteHostPage,
    SshQuestionPage,
    WatchdogPage,
)

# Each row: name, method, path, request, answer, what it does. Formatted by hand, to be read as a table.
# fmt: off

_OF_SAVING = (Reason.CONFLICT, Reason.NOT_WRITABLE, Reason.DISK_FULL)
OF_SSH = (
    Reason.NOT_FOUND, Reason.SSH_MISSING, Reason.SSH_AUTH_FAILED, Reason.SSH_FORWARD_REFUSED, Reason.SSH_LOST,
    Reason.SSH_UNREACHABLE, Reason.SSH_FAILED, Reason.HOST_KEY_UNKNOWN, Reason.HOST_KEY_CHANGED)
"""The reasons of whatever goes over a connection."""

HOSTS = Operation(
    "hosts.list", "GET", "/v1/hosts", Nothing, RemoteHostPage,
    "The remote hosts that were added, with the state of each connection.",
    command="host list")
ADD_HOST = Operation(
    "hosts.add", "POST", "/v1/hosts", AddRemoteHost, RemoteHost,
    "Keep a host by a name; nothing is connected.",
    reasons=_OF_SAVING, command="host add")
HOST_CANDIDATES = Operation(
    "hosts.candidates", "GET", "/v1/hosts/candidates", Nothing, HostCandidatePage,
    "The hosts that the ssh configuration of this user names.",
    command="host candidates")
SSH_QUESTIONS = Operation(
    "hosts.questions", "GET", "/v1/hosts/questions", Nothing, SshQuestionPage,
    "What ssh asks now and waits for.",
    command="host connect")
ANSWER_SSH = Operation(
    "hosts.answer", "POST", "/v1/hosts/questions/{id}", AnswerSshQuestion, Done,
    "Answer a question of ssh, or refuse to.",
    reasons=(Reason.NOT_FOUND,), command="host connect")
REMOTE_HOST = Operation(
    "hosts.show", "GET", "/v1/hosts/{name}", Nothing, RemoteHost,
    "One of the hosts.",
    reasons=(Reason.NOT_FOUND,), command="host list")
CHANGE_HOST = Operation(
    "hosts.change", "PUT", "/v1/hosts/{name}", ChangeRemoteHost, RemoteHost,
    "Keep other facts about a host; another destination or way ends its connection.",
    reasons=(Reason.NOT_FOUND, *_OF_SAVING), command="host change")
REMOVE_HOST = Operation(
    "hosts.remove", "DELETE", "/v1/hosts/{name}", Nothing, RemoteHostPage,
    "Disconnect and forget a host; nothing changes there.",
    reasons=(Reason.NOT_FOUND, *_OF_SAVING), command="host remove")
CONNECT_HOST = Operation(
    "hosts.connect", "POST", "/v1/hosts/{name}/connect", Nothing, RemoteHost,
    "Connect and stay connected; answers at once, and events tell what becomes of it.",
    reasons=(Reason.NOT_FOUND, Reason.SSH_MISSING), command="host connect")
DISCONNECT_HOST = Operation(
    "hosts.disconnect", "POST", "/v1/hosts/{name}/disconnect", Nothing, RemoteHost,
    "End the connection; what runs there goes on.",
    reasons=(Reason.NOT_FOUND,), command="host disconnect")
PROBE_HOST = Operation(
    "hosts.probe", "POST", "/v1/hosts/{name}/probe", Nothing, RemoteFacts,
    "Read the facts of a connected host anew.",
    reasons=OF_SSH, command="host probe", seconds=60.0)
HOST_FACTS = Operation(
    "hosts.facts", "GET", "/v1/hosts/{name}/facts", Nothing, RemoteFacts,
    "What was last read of a host, each part with its time.",
    reasons=(Reason.NOT_FOUND,), command="host facts")
HOST_WATCHDOGS = Operation(
    "hosts.watchdogs", "GET", "/v1/hosts/{name}/watchdogs", Nothing, WatchdogPage,
    "What the watchdogs of its services saw last, and what changed; they look while nobody is connected.",
    reasons=OF_SSH, command="host watch", seconds=60.0)
HOST_SHEET = Operation(
    "hosts.sheet", "GET", "/v1/hosts/{name}/sheet", Nothing, HostSheet,
    "One page about a host in Markdown, made of what was last read of it, with what looks wrong.",
    reasons=(Reason.NOT_FOUND,), command="host sheet")
HOST_PROFILE = Operation(
    "hosts.profile", "GET", "/v1/hosts/{name}/profile", Nothing, HostProfile,
    "The command lines of its engines that were kept as right.",
    reasons=(Reason.NOT_FOUND,), command="host profile")
KEEP_PROFILE = Operation(
    "hosts.profile.keep", "POST", "/v1/hosts/{name}/profile", KeepProfile, HostProfile,
    "Keep the command lines of engines, as last read, as right: another one is a finding from then on.",
    reasons=(Reason.NOT_FOUND, Reason.CONFLICT, Reason.NOT_WRITABLE, Reason.DISK_FULL),
    command="host profile")

# fmt: on

OPERATIONS: tuple[Operation[Any, Any], ...] = tuple(
    value for value in globals().values() if isinstance(value, Operation)
)
