"""Connects to the local socket of a host: a Unix socket, or on Windows a named pipe."""

import asyncio
import sys


async def open_local(path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to whoever listens at a path.

    Raises OSError when nobody does.
    """
    if sys.platform == "win32":
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        transport, _ = await loop.create_pipe_connection(lambda: protocol, path)
        return reader, asyncio.StreamWriter(transport, protocol, reader, loop)
    return await asyncio.open_unix_connection(path)
