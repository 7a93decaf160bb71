"""A recorded trace is played by the clock, again from its start, and never as this machine's GPUs."""

import asyncio
from pathlib import Path
from typing import Any

from engine_host.core.settings import SettingsFile
from engine_host.protocol.host import RECORDED
from engine_host.telemetry import Gpus, History, MachineMonitor, Sampler
from engine_host.telemetry.playback import TracePlayer
from engine_host.telemetry.series import describe
from tests.unit.core.gpu_trace.test_format import CARD, LATER, written


def test_it_plays_by_the_clock_and_begins_again_at_its_end(tmp_path: Path) -> None:
    settings, now = SettingsFile(tmp_path / "s"), [100.0]
    player = TracePlayer(settings, lambda: now[0])
    assert not player.read()
    settings.change({"host.gpu_trace": str(written(tmp_path / "t", (0.0, CARD), (10.0, LATER)))})
    power = []
    # The last moment stays until the next reading, which begins anew.
    for second in (0.0, 5.0, 10.0, 11.0, 12.0):
        now[0] = 100.0 + second
        power.append(player.read()[0].power)
    assert power == [101.5, 101.5, None, 101.5, 101.5]
    assert player.shown is not None
    assert (player.shown.driver, player.shown.problem) == ("580", None)
    settings.change({"host.gpu_trace": None})
    assert not player.read()
    player.close()


def test_one_moment_is_played_for_ever(tmp_path: Path) -> None:
    settings, now = SettingsFile(tmp_path / "s"), [1.0]
    settings.change({"host.gpu_trace": str(written(tmp_path / "t", (0.0, CARD)))})
    player = TracePlayer(settings, lambda: now[0])
    for _ in range(3):
        now[0] += 1
        assert player.read()[0].power == 101.5
    player.close()


def test_a_file_that_goes_bad_is_told_and_plays_no_more(tmp_path: Path) -> None:
    settings = SettingsFile(tmp_path / "s")
    path = written(tmp_path / "t", (0.0, CARD))
    path.write_bytes(path.read_bytes() + b'{"t": 1, "gpus": []}\n')
    settings.change({"host.gpu_trace": str(path)})
    player = TracePlayer(settings)
    assert (player.read(), player.read()) == ((), ())
    assert player.shown is not None
    assert player.shown.problem is not None
    assert "line 3, tells of 0 GPUs" in player.shown.problem.message


def test_its_series_have_names_that_nothing_takes_for_this_machine(tmp_path: Path) -> None:
    settings = SettingsFile(tmp_path / "s")
    settings.change({"host.gpu_trace": str(written(tmp_path / "t", (0.0, CARD)))})

    async def go() -> dict[str, Any]:
        player = TracePlayer(settings)
        sampler = Sampler(MachineMonitor(), Gpus(None), History(), lambda _: None, dict, player=player)
        values = (await sampler.sample()).values
        await sampler.aclose()
        return values

    values = asyncio.run(go())
    assert values["recorded.gpu.3.power"] == 101.5
    assert not [name for name in values if name.startswith("gpu.")]
    kind = describe("recorded.gpu.3.power")
    assert (kind.title, kind.unit) == ("GPU 3 power, recorded", "watts")
    assert RECORDED in kind.source
