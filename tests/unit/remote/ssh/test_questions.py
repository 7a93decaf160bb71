"""Questions of ssh have one place, however many connect at once."""

import asyncio
import os
from pathlib import Path

import pytest

from engine_host.remote.ssh.questions import Attempt, QuestionDesk
from tests.unit.asynchronous import run


def test_two_that_connect_at_once_open_one_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    real = asyncio.start_unix_server

    async def counted(*args: object, **more: object) -> asyncio.Server:
        opened.append(args)
        return await real(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(asyncio, "start_unix_server", counted)
    monkeypatch.chdir(tmp_path)
    desk = QuestionDesk(Path(os.path.relpath(tmp_path / "s")), tmp_path / "askpass", lambda _one, _open: None)

    async def work() -> None:
        await asyncio.gather(*(desk.environment(Attempt(name)) for name in ("a", "b")))
        await desk.close()

    run(work())
    assert len(opened) == 1
