"""Asks an engine's processes what of their patches is live now."""

import asyncio
import time
from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, ValidationError

from engine_host.protocol.patches import PatchProbe

_LARGEST = 1 << 22


class _Patch(BaseModel):
    model_config = ConfigDict(extra="ignore")

    live: bool
    why: str = ""
    hits: int | None = None


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore")

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
        async with asyncio.timeout(seconds):
            reader, writer = await asyncio.open_unix_connection(path)
            try:
                content = await reader.read(_LARGEST)
                while part := await reader.read(_LARGEST):
                    content += part
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return None
    try:
        return _Answer.model_validate_json(content)
    except ValidationError:
        return None
