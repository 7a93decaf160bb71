"""The part of the FAKE host of view tests that keeps other machines; nothing is connected over ssh."""

from abc import ABC, abstractmethod
from typing import Any

from engine_host.operations.performs import performs
from engine_host.protocol.events import EventBase, RemoteHostEvent, SshQuestionEvent
from engine_host.protocol.jobs import Job, JobKind, JobState
from engine_host.protocol.operations import remote_hosts as ops
from engine_host.protocol.operations import remote_install as install
from engine_host.protocol.operations.definition import Done
from engine_host.protocol.remote.hosts import (
    AddRemoteHost,
    AnswerSshQuestion,
    ChangeRemoteHost,
    HostCandidate,
    HostCandidatePage,
    HostProfile,
    HostSheet,
    KeepProfile,
    RemoteFacts,
    RemoteHost,
    RemoteHostPage,
    RemoteHostState,
    SshQuestion,
    SshQuestionPage,
    WatchdogPage,
)
from engine_host.protocol.remote.install import InstallOnHost, RemoteInstallPlan
from tests.views.samples import host as samples


class FakeRemoteHosts(ABC):
    """Other machines of a FAKE host; the parts are plain attributes that a test may change."""

    def __init__(self) -> None:
        self.remote_hosts: dict[str, RemoteHost] = {}
        self.remote_facts: dict[str, RemoteFacts] = {}
        self.sheet = HostSheet(host="gpu", findings=(), markdown="# gpu\n")
        self.profile = HostProfile(host="gpu")
        self.watchdogs = WatchdogPage(host="gpu", read_at=1_000.0, watchdogs=())
        self.install_plan = RemoteInstallPlan(host="gpu")
        self.questions: dict[str, SshQuestion] = {}
        self.candidates: tuple[HostCandidate, ...] = ()
        self.becomes: dict[str, Any] = {"state": RemoteHostState.CONNECTING, "sentence": "Connecting."}

    @property
    @abstractmethod
    def seq(self) -> int:
        """The number of the newest event."""

    @abstractmethod
    def publish(self, event: EventBase) -> None:
        """Number an event and send it to whoever listens."""

    def set_remote(self, remote: RemoteHost) -> RemoteHost:
        """Change a host and say so."""
        self.remote_hosts[remote.name] = remote
        self.publish(RemoteHostEvent(remote=remote))
        return remote

    def ask(self, question: SshQuestion) -> None:
        """Let ssh ask something."""
        self.questions[question.id] = question
        self.publish(SshQuestionEvent(question=question))

    @performs(ops.HOSTS)
    def _remote_hosts(self) -> RemoteHostPage:
        return RemoteHostPage(seq=self.seq, hosts=tuple(self.remote_hosts.values()))

    @performs(ops.ADD_HOST)
    def _add_host(self, asked: AddRemoteHost) -> RemoteHost:
        return self.set_remote(RemoteHost(**asked.model_dump()))

    @performs(ops.REMOVE_HOST)
    def _remove_host(self, name: str) -> RemoteHostPage:
        self.publish(RemoteHostEvent(remote=self.remote_hosts.pop(name), removed=True))
        return self._remote_hosts()

    @performs(ops.CONNECT_HOST)
    def _connect_host(self, name: str) -> RemoteHost:
        return self.set_remote(self.remote_hosts[name].model_copy(update=self.becomes))

    @performs(ops.DISCONNECT_HOST)
    def _disconnect_host(self, name: str) -> RemoteHost:
        gone = {"state": RemoteHostState.DISCONNECTED, "sentence": "Not connected.", "control_socket": None}
        return self.set_remote(self.remote_hosts[name].model_copy(update=gone))

    @performs(ops.PROBE_HOST)
    def _probe_host(self, name: str) -> RemoteFacts:
        return self.remote_facts[name]

    @performs(ops.HOST_FACTS)
    def _host_facts(self, name: str) -> RemoteFacts:
        return self.remote_facts.get(name) or RemoteFacts(host=name)

    @performs(ops.HOST_SHEET)
    def _host_sheet(self, _name: str) -> HostSheet:
        return self.sheet

    @performs(ops.HOST_PROFILE)
    def _host_profile(self, _name: str) -> HostProfile:
        return self.profile

    @performs(ops.KEEP_PROFILE)
    def _keep_profile(self, name: str, asked: KeepProfile) -> HostProfile:
        engines = self.remote_facts[name].engines
        kept = tuple(one for one in engines if str(one.pid) in asked.engines)
        self.profile = HostProfile(host=name, kept_at=1.0, engines=kept)
        return self.profile

    @performs(ops.HOST_WATCHDOGS)
    def _host_watchdogs(self, _name: str) -> WatchdogPage:
        return self.watchdogs

    @performs(ops.CHANGE_HOST)
    def _change_host(self, name: str, asked: ChangeRemoteHost) -> RemoteHost:
        return self.set_remote(self.remote_hosts[name].model_copy(update=asked.model_dump()))

    @performs(ops.HOST_CANDIDATES)
    def _host_candidates(self) -> HostCandidatePage:
        return HostCandidatePage(seq=self.seq, source="~/.ssh/config", candidates=self.candidates)

    @performs(ops.SSH_QUESTIONS)
    def _ssh_questions(self) -> SshQuestionPage:
        return SshQuestionPage(seq=self.seq, questions=tuple(self.questions.values()))

    @performs(ops.ANSWER_SSH)
    def _answer_ssh(self, question_id: str, _asked: AnswerSshQuestion) -> Done:
        self.publish(SshQuestionEvent(question=self.questions.pop(question_id), open=False))
        return Done()

    @performs(install.PLAN_HOST_INSTALL)
    def _plan_host_install(self, _name: str, _asked: InstallOnHost) -> RemoteInstallPlan:
        return self.install_plan

    @performs(install.PLAN_HOST_UNINSTALL)
    def _plan_host_uninstall(self, _name: str) -> RemoteInstallPlan:
        return self.install_plan

    @performs(install.PLAN_HOST_BACK)
    def _plan_host_back(self, _name: str) -> RemoteInstallPlan:
        return self.install_plan

    @performs(install.HOST_BACK)
    def _host_back(self, name: str) -> Job:
        return samples.job(JobKind.HOST_UPDATE, JobState.RUNNING, touches=f"host {name}")

    @performs(install.INSTALL_HOST)
    def _install_host(self, name: str, _asked: InstallOnHost) -> Job:
        return samples.job(JobKind.HOST_INSTALL, JobState.RUNNING, touches=f"host {name}")

    @performs(install.UPDATE_HOST)
    def _update_host(self, name: str, _asked: InstallOnHost) -> Job:
        return samples.job(JobKind.HOST_UPDATE, JobState.RUNNING, touches=f"host {name}")

    @performs(install.UNINSTALL_HOST)
    def _uninstall_host(self, name: str) -> Job:
        return samples.job(JobKind.HOST_UNINSTALL, JobState.RUNNING, touches=f"host {name}")
