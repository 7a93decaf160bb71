"""An httpx transport over a Unix socket or a Windows named pipe, on asyncio's own streams.

Under the Qt event loop the default backend logs an error on every seventh cancelled stream; this one on none.
"""

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Any

import httpcore
import httpx

from engine_host.client.local_socket import open_local


class _Stream(httpcore.AsyncNetworkStream):
    """One connection to the host."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, opened: set["_Stream"]
    ) -> None:
        """`opened` holds it until it is closed."""
        self._reader, self._writer, self._opened = reader, writer, opened
        opened.add(self)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            async with asyncio.timeout(timeout):
                return await self._reader.read(max_bytes)
        except TimeoutError as error:
            raise httpcore.ReadTimeout(str(error)) from error
        except OSError as error:
            raise httpcore.ReadError(str(error)) from error

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if not buffer:
            return
        try:
            async with asyncio.timeout(timeout):
                self._writer.write(buffer)
                await self._writer.drain()
        except TimeoutError as error:
            raise httpcore.WriteTimeout(str(error)) from error
        except OSError as error:
            raise httpcore.WriteError(str(error)) from error

    async def aclose(self) -> None:
        self._opened.discard(self)
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    def get_extra_info(self, info: str) -> Any:
        return self._reader.at_eof() if info == "is_readable" else None


class _LocalBackend(httpcore.AsyncNetworkBackend):
    """Connects to the local socket and to nothing else.

    httpcore's pool forgets a connection that is still being made when it is closed; this closes it.
    """

    def __init__(self) -> None:
        self._opened: set[_Stream] = set()
        self._closed = False

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.AsyncNetworkStream:
        try:
            async with asyncio.timeout(timeout):
                reader, writer = await open_local(path)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(str(error)) from error
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        stream = _Stream(reader, writer, self._opened)
        if self._closed:
            await stream.aclose()
            raise httpcore.ConnectError("The client was closed while it connected.")
        return stream

    async def aclose(self) -> None:
        """Close what is open, and what is opened from now on."""
        self._closed = True
        for stream in tuple(self._opened):
            await stream.aclose()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        raise httpcore.ConnectError("No connection is opened but the local socket.")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class LocalTransport(httpx.AsyncHTTPTransport):
    """Speaks HTTP to whoever listens at a local path."""

    def __init__(self, path: str) -> None:
        super().__init__(uds=path, verify=False, trust_env=False)
        self._backend = _LocalBackend()
        self._pool = httpcore.AsyncConnectionPool(
            uds=path, network_backend=self._backend, http1=True, keepalive_expiry=30, max_connections=32
        )

    async def aclose(self) -> None:
        """Close every connection, also those that are still being made."""
        await super().aclose()
        await self._backend.aclose()
