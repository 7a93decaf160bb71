"""A llama.cpp server of one's own for a measurement or a test: started, and ended with the block."""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path


@asynccontextmanager
async def started_server(
    model: Path,
    socket: str,
    *,
    slots: int,
    context: int,
    threads: int = 2,
    server: Path | None = None,
    embeddings: bool = False,
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a server on a Unix socket until the block ends; `context` in tokens, for all slots together.

    `server` is a llama-server program; without it the prebuilt one of the `xllamacpp` package. It may not
    answer yet when the block begins. Raises OSError when it cannot be started.
    """
    prebuilt = [sys.executable, "-m", "engine_host.engines.xllamacpp_server"]
    command = [str(server)] if server else prebuilt
    command += ["-m", str(model), "--host", socket, "-a", "bench", "-np", str(slots), "-c", str(context)]
    command += ["-t", str(threads), "-tb", str(threads), "--no-kv-unified", "--slots", "--metrics"]
    if embeddings:
        command += ["--embeddings", "--pooling", "mean"]
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        # llama.cpp's server leaves its socket behind, and cannot start again where one lies.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(socket)
