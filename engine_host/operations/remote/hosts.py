"""Remote hosts: kept, connected, asked for their facts, and the questions of ssh."""

import asyncio
from collections.abc import Mapping

from engine_host.core.event_log import EventLog
from engine_host.core.outside.ssh_config import config_file
from engine_host.operations.performs import performs
from engine_host.protocol.operations import remote_hosts as ops
from engine_host.protocol.operations.definition import Done
from engine_host.protocol.remote.hosts import (
    AddRemoteHost,
    AnswerSshQuestion,
    ChangeRemoteHost,
    HostCandidate,
    HostCandidatePage,
    RemoteFacts,
    RemoteHost,
    RemoteHostPage,
    SshQuestionPage,
)
from engine_host.remote.candidates import configured_hosts, suggested_name
from engine_host.remote.hosts import RemoteHosts


class RemoteHostOperations:
    """The remote hosts, as the control API shows and changes them."""

    def __init__(self, hosts: RemoteHosts, events: EventLog, environment: Mapping[str, str]) -> None:
        """`environment` is where the ssh configuration is named, if it is not the user's own."""
        self._hosts = hosts
        self._events = events
        self._environment = environment

    @performs(ops.HOSTS)
    def page(self) -> RemoteHostPage:
        """Return all hosts."""
        return RemoteHostPage(seq=self._events.seq, hosts=tuple(self._hosts.all()))

    @performs(ops.REMOTE_HOST)
    def show(self, name: str) -> RemoteHost:
        """Return one. Raises HostError(not_found)."""
        return self._hosts.shown(name)

    @performs(ops.ADD_HOST)
    def add(self, asked: AddRemoteHost) -> RemoteHost:
        """Keep a host. Raises HostError(conflict), and what saving raises."""
        return self._hosts.add(asked)

    @performs(ops.CHANGE_HOST)
    async def change(self, name: str, asked: ChangeRemoteHost) -> RemoteHost:
        """Keep other facts about a host. Raises HostError(not_found), and what saving raises."""
        return await self._hosts.change(name, asked)

    @performs(ops.REMOVE_HOST)
    async def remove(self, name: str) -> RemoteHostPage:
        """Forget a host. Raises HostError(not_found), and what saving raises."""
        await self._hosts.remove(name)
        return self.page()

    @performs(ops.CONNECT_HOST)
    async def connect(self, name: str) -> RemoteHost:
        """Connect and stay connected, or look again there. Raises HostError: not_found, ssh_missing."""
        self._hosts.connect(name)
        return await self._hosts.look_again(name)

    @performs(ops.DISCONNECT_HOST)
    async def disconnect(self, name: str) -> RemoteHost:
        """End the connection. Raises HostError(not_found)."""
        return await self._hosts.disconnect(name)

    @performs(ops.HOST_CANDIDATES)
    async def candidates(self) -> HostCandidatePage:
        """Return the hosts that the ssh configuration names."""
        path = config_file(self._environment)
        found = await asyncio.to_thread(configured_hosts, path)
        kept = {host.destination: host.name for host in self._hosts.book.all.values()}
        return HostCandidatePage(
            seq=self._events.seq,
            source=str(path),
            candidates=tuple(
                HostCandidate(
                    destination=one.destination,
                    suggested_name=suggested_name(one.destination),
                    address=one.address,
                    user=one.user,
                    kept_as=kept.get(one.destination),
                )
                for one in found
            ),
        )

    @performs(ops.SSH_QUESTIONS)
    def questions(self) -> SshQuestionPage:
        """Return what ssh asks now."""
        return SshQuestionPage(seq=self._events.seq, questions=self._hosts.desk.waiting)

    @performs(ops.ANSWER_SSH)
    def answer(self, question_id: str, answer: AnswerSshQuestion) -> Done:
        """Answer a question of ssh, or refuse to. Raises HostError: not_found, bad_request."""
        self._hosts.desk.answer(question_id, answer)
        return Done()

    @performs(ops.HOST_FACTS)
    def facts(self, name: str) -> RemoteFacts:
        """Return what was last read of a host. Raises HostError(not_found)."""
        return self._hosts.book.facts(name)

    @performs(ops.PROBE_HOST)
    async def probe(self, name: str) -> RemoteFacts:
        """Read the facts of a connected host anew. Raises HostError: not_found, ssh_lost, ssh_failed."""
        facts = await self._hosts.probe(name)
        await self._hosts.look_again(name)
        return facts
