"""The keys of the public endpoint: listed, made, revoked; what was made holds from the next request on."""

import asyncio
from collections.abc import Callable

from engine_host.core.event_log import EventLog
from engine_host.core.keys.file import KeyFile
from engine_host.core.keys.ring import KeyRing
from engine_host.operations.performs import performs
from engine_host.protocol.endpoint.keys import CreatedKey, CreateKey, KeyPage, OwnKey
from engine_host.protocol.operations import endpoint as endpoint_ops


class KeyOperations:
    """The keys in their file, and those that requests meet."""

    def __init__(
        self, file: KeyFile, ring: KeyRing, events: EventLog, is_reachable: Callable[[], bool]
    ) -> None:
        """`is_reachable` says whether other machines reach the endpoint, which then needs a key."""
        self._file = file
        self._ring = ring
        self._events = events
        self._is_reachable = is_reachable
        self._turn = asyncio.Lock()

    @performs(endpoint_ops.KEYS)
    async def page(self) -> KeyPage:
        """Return all keys, those of the plain file as it is now; raises what reading it raises."""
        async with self._turn:
            return await self._refreshed()

    @performs(endpoint_ops.OWN_KEY)
    def own(self) -> OwnKey:
        """Return the key of this run of the host, for who has the control token and asks the endpoint."""
        return OwnKey(key=self._ring.own if self._ring.needed else None)

    @performs(endpoint_ops.CREATE_KEY)
    async def create(self, asked: CreateKey) -> CreatedKey:
        """Make a key. Raises HostError(conflict), and what saving raises."""
        async with self._turn:
            made = await asyncio.to_thread(self._file.create, asked.name, asked.permissions)
            await self._refreshed()
            return made

    @performs(endpoint_ops.REVOKE_KEY)
    async def revoke(self, key_id: str) -> KeyPage:
        """Revoke a key by id or name. Raises HostError(not_found), HostError(conflict) for the last one."""
        async with self._turn:
            await asyncio.to_thread(self._file.revoke, key_id, needed=self._is_reachable())
            return await self._refreshed()

    async def _refreshed(self) -> KeyPage:
        self._ring.replace(await asyncio.to_thread(self._file.read))
        return await asyncio.to_thread(self._file.page, self._events.seq)
