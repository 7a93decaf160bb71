"""The series of a machine that may print anything."""

import asyncio

import pytest

from engine_host.remote.facts.series import MachineSeries
from engine_host.remote.run import Feed, RemoteOutcome, RemoteScript, Take
from engine_host.telemetry.history import History


class Stream:
    """FAKE: what the program was sent."""

    sent = b""

    def write(self, content: bytes) -> None:
        """Keep it."""
        self.sent += content

    async def drain(self) -> None:
        """Do nothing."""


def followed(*samples: str, step: float = 10.0) -> History:
    """Return what was kept of these samples, each cut in the middle."""
    return followed_by(*samples, step=step)[0]


def followed_by(*samples: str, step: float = 10.0) -> tuple[History, MachineSeries]:
    """Return what was kept of these samples, each cut in the middle, and what read them."""
    history, now = History(), [1_000_000.0]

    async def run(_script: RemoteScript, feed: Feed, take: Take) -> RemoteOutcome:
        stream = Stream()
        await feed(stream)  # type: ignore[arg-type]
        mark = stream.sent.splitlines()[-2].decode()
        for sample in samples:
            text = f"half a line\n{mark} begin\n{sample}\n{mark} end\n".encode()
            await take(text[: len(text) // 2])
            await take(text[len(text) // 2 :])
            now[0] += step
        return RemoteOutcome(0, b"", "")

    series = MachineSeries(history, lambda: now[0])
    asyncio.run(series.follow(run))
    return history, series


def newest(history: History) -> dict[str, float | None]:
    """Return the last value of each series."""
    return {one.name: one.values[-1] for one in asyncio.run(history.page(since=0.0, step=10.0)).series}


def test_memory_processor_and_gpus() -> None:
    told, series = followed_by(
        "cpu  100 0 100 800 0 0 0 0 0 0\nMemTotal: 1000 kB\nMemAvailable: 400 kB",
        "cpu  150 0 150 900 0 0 0 0 0 0\nMemTotal: 1000 kB\nMemAvailable: 300 kB\n"
        "gpu 0, 1024, 2048, 50, 60, 120.5, GPU-6f1c, Made-up 24, of two\n"
        "gpu 1, 2, [N/A], 0, [N/A], [N/A], , " + "x" * 1000,
    )
    assert series.latest is not None
    assert series.latest.sample.at == 1_000_010
    assert series.latest.gpus == {"0": {"uuid": "GPU-6f1c", "name": "Made-up 24, of two"}, "1": {}}
    assert series.latest.sample.values == newest(told)
    assert newest(told) == {
        "ram.total": 1000 * 1024,
        "ram.used": 700 * 1024,
        "cpu.share": 0.5,
        "gpu.0.memory.used": 1 << 30,
        "gpu.0.memory.total": 2 << 30,
        "gpu.0.utilization": 0.5,
        "gpu.0.temperature": 60.0,
        "gpu.0.power": 120.5,
        "gpu.1.memory.used": 2 << 20,
        "gpu.1.utilization": 0.0,
    }


@pytest.mark.parametrize(
    "sample",
    [
        "",
        "cpu",
        "cpu  x y z",
        "cpu  1",
        "cpu  " + "1" * 50_000 + "x",
        "cpu  " + "1 " * 25_000 + "x",
        "cpu" + " " * 50_000 + "x",
        "cpu  " + "\u0661 " * 8,
        "MemTotal: 99999999999999999999 kB\nMemAvailable: 1 kB",
        "gpu 0, 1",
        "gpu 0, 1, 2, 3, 4, 5",
        "gpu -1, 1, 2, 3, 4, 5, u, n",
        "gpu 9999999, 1, 2, 3, 4, 5, u, n",
        "gpu 0, [N/A], nan, inf, 1e999, \x1b[31m, \x1b[31m, \x00",
        "gpu \u0660, 1, 2, 3, 4, 5, u, n",
        "\ud7ff" * 1000,
    ],
)
def test_what_makes_no_sense_is_left_out(sample: str) -> None:
    assert newest(followed(sample, sample)) == {}


def test_a_flood_without_an_end_is_not_kept() -> None:
    assert newest(followed("x" * 10_000_000)) == {}
