"""The machine and its processes, of which each gives itself a name."""

from types import SimpleNamespace

import pytest

from engine_host.protocol.host import GpuHolder
from engine_host.telemetry import machine


@pytest.mark.parametrize("name", ["\udcff\udcfe", "x" * 100_000, "\x1b]0;title\x07"])
def test_a_process_with_any_name_can_be_told_of(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr("psutil.Process", lambda _pid: SimpleNamespace(name=lambda: name))
    found = machine.process_name(1)
    assert len(found) <= 64
    assert GpuHolder(pid=1, name=found, memory=None).model_dump_json()
