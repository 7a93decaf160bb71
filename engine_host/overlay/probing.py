"""Asks an engine's processes what of their patches is live now."""

import asyncio
import os
import stat
import time
from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine_host.protocol.patches import PatchProbe

_LARGEST = 1 << 22
_PIECE = 1 << 16


class _Patch(BaseModel):
    model_config = ConfigDict(extra="ignore", defer_build=True)

    live: bool
    why: str = Field("", max_length=4_000)
    hits: int | None = Field(None, ge=0, lt=1 << 62)


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore", defer_build=True)

    pid: int
    patches: dict[str, _Patch]


async def probe(sockets: Mapping[int, str], seconds: float = 2.0) -> dict[int, dict[str, PatchProbe]]:
    """Return the reports of all processes that answer in time; one that is gone or stuck is left out."""
    answers = await asyncio.gather(*(_ask(path, seconds) for path in sockets.values()))
    now = time.time()
    return {
        pid: {
            patch: PatchProbe(at=now, live=report.live, why=report.why, hits=report.hits)
            for patch, report in answer.patches.items()
        }
        for pid, answer in zip(sockets, answers, strict=True)
        if answer is not None and answer.pid == pid
    }


async def _ask(path: str, seconds: float) -> _Answer | None:
    try:
        state = os.lstat(path)
        if not stat.S_ISSOCK(state.st_mode) or state.st_uid != os.getuid():
            return None
        async with asyncio.timeout(seconds):
            reader, writer = await asyncio.open_unix_connection(path)
            try:
                content = b""
                while part := await reader.read(_PIECE):
                    content += part
                    if len(content) > _LARGEST:
                        return None
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return None
    try:
        return _Answer.model_validate_json(content)
    except ValidationError:
        return None
