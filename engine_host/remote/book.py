"""The hosts that a person added, as they are kept: in the host's database, with nothing secret."""

import logging
import shlex
import time
from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine_host.core.did_you_mean import meant_or
from engine_host.core.errors import HostError
from engine_host.core.store import Store
from engine_host.protocol.base import Seconds
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.remote.hosts import (
    AddRemoteHost,
    ChangeRemoteHost,
    HostProfile,
    RemoteEngine,
    RemoteFacts,
)
from engine_host.protocol.text import Line
from engine_host.remote.transfer.sent import SentModel, SentModels

_log = logging.getLogger(__name__)
_KIND, _FACTS, _PROFILE = "remote_host", "remote_facts", "remote_profile"
_REMOVED = "remote_removed"
"""The destination that a removed host had: what is known of it counts again where it comes back."""
_KEPT_AFTER_REMOVAL = 30 * 86400.0
"""Seconds for which the facts and the profile of a removed host are kept."""
_MOST_REMOVED = 1000
MOST = 100


class KeptHost(AddRemoteHost):
    """A host with the time when it was added; `wanted` while a person wants it connected.

    A fact that another version keeps of hosts does not lose the host, nor a model root that it took.
    """

    model_config = ConfigDict(extra="ignore", defer_build=True)
    model_root: Annotated[Line, Field(max_length=4096)] | None = None
    added_at: Seconds
    wanted: bool = False


class _Removed(BaseModel):
    """A host that was removed, and when."""

    model_config = ConfigDict(defer_build=True)
    name: str
    destination: str
    at: Seconds

    @classmethod
    def read(cls, body: str | None) -> "_Removed | None":
        """Return what was kept; None for nothing, and for what another version kept."""
        try:
            return None if body is None else cls.model_validate_json(body)
        except ValidationError:
            return None


class HostBook:
    """All hosts by name; every change is saved before it holds."""

    def __init__(self, store: Store) -> None:
        """Read what was saved; what is no host of this version is left out, and said in the log."""
        self._store = store
        self.sent = SentModels(store)
        self._hosts: dict[str, KeptHost] = {}
        self._facts: dict[str, RemoteFacts] = {}
        for body in store.newest(_KIND, MOST):
            try:
                host = KeptHost.model_validate_json(body)
            except ValidationError as error:
                _log.warning("a host of another version of this program is left out: %s", error)
                continue
            self._hosts[host.name] = host
        self._forget_removed()

    @property
    def all(self) -> Mapping[str, KeptHost]:
        """The hosts by name."""
        return self._hosts

    def get(self, name: str) -> KeptHost:
        """Return a host. Raises HostError(not_found)."""
        found = self._hosts.get(name)
        if found is None:
            known = ", ".join(sorted(self._hosts)) or "none"
            raise HostError(
                Reason.NOT_FOUND,
                tr("There is no host {name}.", name=repr(name[:80])),
                cause=tr("There are: {known}.", known=known),
                fix=meant_or(
                    Fix(text="Add it, or see what can be added.", command="sndr host candidates"),
                    name,
                    self._hosts,
                    see="sndr host list",
                ),
            )
        return found

    def add(self, asked: AddRemoteHost) -> KeptHost:
        """Keep a host; one that was removed comes back with its facts if it leads to where it did.

        Raises HostError(conflict) for a name that is taken, and what saving raises.
        """
        if asked.name in self._hosts:
            same = self._hosts[asked.name].destination == asked.destination
            raise HostError(
                Reason.CONFLICT,
                tr(
                    "There is a host {asked} already; it leads to {destination}.",
                    asked=asked.name,
                    destination=self._hosts[asked.name].destination,
                ),
                fix=Fix(text="Use that one.", command=f"sndr host connect {asked.name}")
                if same
                else Fix(
                    text="Take another name, or lead that one elsewhere.",
                    command=shlex.join(["sndr", "host", "change", asked.name, asked.destination]),
                ),
            )
        if len(self._hosts) >= MOST:
            raise HostError(
                Reason.CONFLICT,
                tr("There are {most} hosts, as many as there can be.", most=MOST),
                fix=Fix(text="Remove one.", command="sndr host remove NAME"),
            )
        removed = _Removed.read(self._store.get(_REMOVED, asked.name))
        if removed is None or removed.destination != asked.destination:
            self._forget_known(asked.name)
        return self._save(KeptHost(**asked.model_dump(), added_at=time.time()))

    def change(self, name: str, asked: ChangeRemoteHost) -> KeptHost:
        """Keep other words about a host; at another destination nothing is known of it yet.

        Raises HostError(not_found), and what saving raises.
        """
        old = self.get(name)
        new = self._save(KeptHost(**asked.model_dump(), name=name, added_at=old.added_at, wanted=old.wanted))
        if new.destination != old.destination:
            self._forget_known(name)
        return new

    def want(self, name: str, wanted: bool) -> KeptHost:
        """Note whether a host is to be connected; a full disk is no harm. Raises HostError(not_found)."""
        host = self.get(name).model_copy(update={"wanted": wanted})
        try:
            return self._save(host)
        except HostError as error:
            # The connection itself needs no disk.
            _log.warning("that %s is connected is not kept: %s", name, error.problem.message)
            return host

    def remove(self, name: str) -> None:
        """Remove a host; its facts and profile stay until its name leads elsewhere.

        Raises HostError(not_found), and what saving raises.
        """
        host = self.get(name)
        removed = _Removed(name=name, destination=host.destination, at=time.time())
        self._store.put(_REMOVED, name, removed.at, removed.model_dump_json())
        self._store.remove(_KIND, name)
        del self._hosts[name]

    def facts(self, name: str) -> RemoteFacts:
        """Return what was last read of a host. Raises HostError(not_found)."""
        self.get(name)
        if name not in self._facts:
            body = self._store.get(_FACTS, name)
            try:
                found = RemoteFacts(host=name) if body is None else RemoteFacts.model_validate_json(body)
            except ValidationError:
                found = RemoteFacts(host=name)
            self._facts[name] = found
        return self._facts[name]

    def keep_facts(self, facts: RemoteFacts) -> None:
        """Keep what was read of a host; raises what saving raises."""
        self._store.put(_FACTS, facts.host, time.time(), facts.model_dump_json())
        self._facts[facts.host] = facts

    def profile(self, name: str) -> HostProfile:
        """Return the engines that were kept as right. Raises HostError(not_found)."""
        self.get(name)
        body = self._store.get(_PROFILE, name)
        try:
            return HostProfile(host=name) if body is None else HostProfile.model_validate_json(body)
        except ValidationError:
            return HostProfile(host=name)

    def keep_profile(
        self, name: str, engines: tuple[RemoteEngine, ...], others: tuple[RemoteEngine, ...]
    ) -> HostProfile:
        """Keep engines as right; `others` ran beside them.

        Raises HostError(not_found), and what saving raises.
        """
        self.get(name)
        kept = HostProfile(host=name, kept_at=time.time(), engines=engines, others=others)
        self._store.put(_PROFILE, name, time.time(), kept.model_dump_json())
        return kept

    def sent_to(self, name: str) -> list[SentModel]:
        """Return the models that were sent to a host. Raises HostError(not_found)."""
        return self.sent.to(self.get(name).destination)

    def _forget_removed(self) -> None:
        """Forget what is known of hosts that were removed long ago; a full disk is no harm."""
        for body in self._store.newest(_REMOVED, _MOST_REMOVED):
            removed = _Removed.read(body)
            if removed is None or 0 <= time.time() - removed.at < _KEPT_AFTER_REMOVAL:
                continue
            try:
                if removed.name not in self._hosts:
                    self._forget_known(removed.name)
                self._store.remove(_REMOVED, removed.name)
            except HostError as error:
                _log.warning("what is known of %s is not forgotten: %s", removed.name, error.problem.message)

    def _forget_known(self, name: str) -> None:
        self._store.remove(_FACTS, name)
        self._facts.pop(name, None)
        self._store.remove(_PROFILE, name)

    def _save(self, host: KeptHost) -> KeptHost:
        self._store.put(_KIND, host.name, host.added_at, host.model_dump_json())
        self._hosts[host.name] = host
        return host
