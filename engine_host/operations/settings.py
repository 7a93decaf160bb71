"""The program's settings, read and changed."""

import asyncio
from collections.abc import Awaitable, Callable

from engine_host.core.event_log import EventLog
from engine_host.core.settings import SettingsFile
from engine_host.operations.performs import performs
from engine_host.operations.setting_checks import check_endpoint, check_tls, check_trace, doubts
from engine_host.protocol.host import Endpoint
from engine_host.protocol.launch.plans import Finding
from engine_host.protocol.operations import table as ops
from engine_host.protocol.settings import MendSettings, SettingPage, SettingsChange, SettingsRepair


class SettingOperations:
    """The settings with the layer of each value."""

    def __init__(
        self,
        settings: SettingsFile,
        events: EventLog,
        endpoint: Callable[[], Endpoint],
        changed: Callable[[tuple[str, ...]], Awaitable[None]],
    ) -> None:
        """`changed` is told the names of what changed, so that it takes effect."""
        self._settings = settings
        self._events = events
        self._endpoint = endpoint
        self._changed = changed

    @performs(ops.SETTINGS)
    def page(self) -> SettingPage:
        """Return every setting."""
        return self._page()

    @performs(ops.CHANGE_SETTINGS)
    async def change(self, asked: SettingsChange) -> SettingPage:
        """Set values, all or none.

        Raises HostError(setting_invalid), HostError(port_in_use), and what saving the file raises.
        """
        now = self._endpoint()
        if {"endpoint.host", "endpoint.port"} & set(asked.values):
            # A name may have to be looked up in the network.
            await asyncio.to_thread(check_endpoint, asked.values, now.host, now.port)
        if {"endpoint.tls_certificate", "endpoint.tls_key"} & set(asked.values):
            await asyncio.to_thread(check_tls, asked.values, self._settings.current.endpoint)
        if "host.gpu_trace" in asked.values:
            await asyncio.to_thread(check_trace, asked.values)
        changed = self._settings.change(asked.values)
        if asked.values.get("endpoint.port") == now.wanted_port != now.port:
            # It gave way to another before.
            changed = (*changed, "endpoint.port")
        if changed:
            await self._changed(changed)
        own_patches = self._settings.path.parent / "patches"
        return self._page(
            await asyncio.to_thread(doubts, asked.values, own_patches, self._settings.current.endpoint)
        )

    @performs(ops.SETTINGS_REPAIR)
    def repair_preview(self) -> SettingsRepair:
        """Return what is wrong with the file, and the diff of a repair."""
        return self._settings.preview()

    @performs(ops.MEND_SETTINGS)
    async def mend(self, asked: MendSettings) -> SettingPage:
        """Repair the file, set it aside, or read it again; what changes by that takes effect.

        Raises HostError(setting_invalid) where nothing can be repaired, and what writing raises.
        """
        changed = self._settings.mend(asked.how)
        if changed:
            await self._changed(changed)
        return self._page()

    def _page(self, warnings: tuple[Finding, ...] = ()) -> SettingPage:
        return SettingPage(
            seq=self._events.seq,
            file=str(self._settings.path),
            settings=self._settings.settings(),
            warnings=warnings,
            problem=self._settings.problem,
        )
