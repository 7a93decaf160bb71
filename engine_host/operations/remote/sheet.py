"""Says what to know about a remote host: its sheet with its lints, its engines' profile, its watchdogs."""

import time

from engine_host.operations.performs import performs
from engine_host.protocol.operations import remote_hosts as ops
from engine_host.protocol.remote.hosts import HostProfile, HostSheet, KeepProfile, WatchdogPage
from engine_host.remote.hosts import RemoteHosts
from engine_host.remote.lints import lints
from engine_host.remote.profile import chosen_engines
from engine_host.remote.sheet import sheet
from engine_host.remote.watchdogs import read_watchdogs


class HostSheetOperations:
    """Sheets and profiles of remote hosts, made of what was last read of them."""

    def __init__(self, hosts: RemoteHosts) -> None:
        self._hosts = hosts

    @performs(ops.HOST_SHEET)
    def show(self, name: str) -> HostSheet:
        """Return the sheet of a host. Raises HostError(not_found)."""
        host, facts = self._hosts.shown(name), self._hosts.book.facts(name)
        profile = self._hosts.book.profile(name).engines
        found = lints(host, facts, profile)
        return HostSheet(host=name, findings=found, markdown=sheet(host, facts, found, profile))

    @performs(ops.HOST_PROFILE)
    def profile(self, name: str) -> HostProfile:
        """Return the engines that were kept as right. Raises HostError(not_found)."""
        return self._hosts.book.profile(name)

    @performs(ops.KEEP_PROFILE)
    def keep(self, name: str, asked: KeepProfile) -> HostProfile:
        """Keep what runs as right. Raises HostError: not_found, conflict, and what saving raises."""
        chosen, others = chosen_engines(self._hosts.book.facts(name), asked)
        return self._hosts.book.keep_profile(name, chosen, others)

    @performs(ops.HOST_WATCHDOGS)
    async def watchdogs(self, name: str) -> WatchdogPage:
        """Return what watchdogs there saw last. Raises HostError: not_found, ssh_lost, ssh_failed."""
        found = await read_watchdogs(lambda script: self._hosts.run(name, script), name)
        return WatchdogPage(host=name, read_at=time.time(), watchdogs=found)
