"""The host removes bundles that nobody needs any more when it starts."""

import os
import time
from pathlib import Path

import pytest

from tests.integration.host.conftest import RunningHost


def test_old_bundles_are_removed_when_a_host_starts(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = home / "cache-of-this-test"
    monkeypatch.setenv("SNDR_CACHE", str(cache))
    for number in range(22):
        folder = cache / "overlay" / f"digest{number:02}"
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text("{}")
        (cache / "vllm" / folder.name).mkdir(parents=True)
        then = time.time() - (10 + number) * 86_400
        os.utime(folder, (then, then))
    host = RunningHost().connect()
    host.end()
    left = [f"digest{number:02}" for number in range(20)]
    assert sorted(folder.name for folder in (cache / "overlay").iterdir()) == left
    assert sorted(folder.name for folder in (cache / "vllm").iterdir()) == left
