"""A llama.cpp server of one's own for a measurement or a test: started, waited for, ended."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

_PREBUILT = """
import sys, threading, xllamacpp
model, socket, slots, context, threads, embeddings = sys.argv[1:7]
p = xllamacpp.CommonParams()
p.model.path = model
p.model_alias = {"bench"}
p.hostnames = [socket]
p.n_parallel = int(slots)
p.n_ctx = int(context)
p.cpuparams.n_threads = int(threads)
p.cpuparams_batch.n_threads = int(threads)
p.kv_unified = False
p.endpoint_slots = True
p.endpoint_metrics = True
if embeddings == "1":
    p.embedding = True
server = xllamacpp.Server(p)
threading.Event().wait()
"""


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

    `server` is a llama-server program; without it the prebuilt one of the `xllamacpp` package runs in a
    Python process. It may not answer yet when the block begins. Raises OSError when it cannot be started.
    """
    if server is None:
        numbers = (slots, context, threads, int(embeddings))
        command = [sys.executable, "-c", _PREBUILT, str(model), socket, *map(str, numbers)]
    else:
        command = [str(server), "-m", str(model), "--host", socket, "-a", "bench", "-np", str(slots)]
        command += ["-c", str(context), "-t", str(threads), "--no-kv-unified", "--slots", "--metrics"]
        if embeddings:
            command.append("--embeddings")
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, "LLAMA_LOG_VERBOSITY": "0"},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
