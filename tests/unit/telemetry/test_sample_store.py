"""Series on the disk: bounded, whole after damage, and no word of a damaged file counts."""

import logging
import math
import sqlite3
import zlib
from array import array
from pathlib import Path

import pytest

from engine_host.telemetry.sample_store import Chunk, SampleStore, open_samples
from engine_host.telemetry.steps import RESOLUTIONS, Resolution

FINE = RESOLUTIONS[0]
NOW = 1_795_000_000.0


def chunk(number: int, *values: float, name: str = "ram.used", resolution: Resolution = FINE) -> Chunk:
    filled = array("d", [*values, *[math.nan] * (resolution.chunk - len(values))])
    return Chunk(resolution, name, number, filled)


def newest() -> int:
    return int(NOW // FINE.step // FINE.chunk)


def test_a_chunk_is_laid_over_what_is_kept_of_it(tmp_path: Path) -> None:
    store = SampleStore(tmp_path / "t.sqlite")
    store.write([chunk(newest(), 1.0, 2.0)])
    store.write([chunk(newest(), math.nan, 3.0, 4.0)])
    (found,) = store.read(FINE, newest(), newest(), ())
    assert found.values[:3].tolist() == [1.0, 3.0, 4.0]
    assert store.read(FINE, newest(), newest(), ["cpu.share"]) == []
    store.close()


def test_more_than_a_span_is_removed(tmp_path: Path) -> None:
    store = SampleStore(tmp_path / "t.sqlite")
    for resolution in RESOLUTIONS:
        here = int(NOW // resolution.step // resolution.chunk)
        measured = range(here - resolution.chunks - 5, here + 1)
        store.write([chunk(number, 1.0, resolution=resolution) for number in measured])
        found = store.read(resolution, 0, here, ())
        assert sorted(one.number for one in found) == list(range(here - resolution.chunks + 1, here + 1))
    store.close()


def test_a_clock_that_was_wrong_for_a_moment_takes_nothing_with_it(tmp_path: Path) -> None:
    store = SampleStore(tmp_path / "t.sqlite")
    minutes = RESOLUTIONS[-1]
    here = int(NOW // minutes.step // minutes.chunk)
    store.write([chunk(number, 1.0, resolution=minutes) for number in range(here - 80, here + 1)])
    ahead = here + int(40 * 86400 // minutes.step // minutes.chunk)
    store.write([chunk(ahead, 1.0, resolution=minutes)])
    store.cut(NOW)
    assert len(store.read(minutes, 0, ahead, ())) == 81
    store.close()


def test_the_file_has_a_limit_and_the_oldest_goes(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    store = SampleStore(path, largest=1 << 20)
    for number in range(newest() - 11, newest() + 1):
        noise = [math.sin(number * 1000 + place) for place in range(FINE.chunk)]
        store.write([chunk(number, *noise, name=f"engine.e{one}.memory") for one in range(100)])
    assert path.stat().st_size <= 1 << 20
    kept = store.read(FINE, 0, newest(), ())
    assert max(one.number for one in kept) == newest()
    assert min(one.number for one in kept) > newest() - 11
    store.close()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no archive",
        zlib.compress(b"x" * 7),
        zlib.compress(bytes(1 << 24)),
        zlib.compress(b"x" * 2400)[:-9],
        None,
        "words",
        7.5,
    ],
    ids=lambda body: type(body).__name__,
)
def test_a_damaged_chunk_is_a_gap(tmp_path: Path, body: object) -> None:
    path = tmp_path / "t.sqlite"
    store = SampleStore(path)
    store.write([chunk(newest(), 1.0)])
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA ignore_check_constraints=1")
        other.execute("UPDATE chunk SET body = ?", (b"" if body is None else body,))
    other.close()
    (found,) = store.read(FINE, newest(), newest(), ())
    assert len(found.values) == FINE.chunk
    store.write([chunk(newest(), 5.0)])
    assert store.read(FINE, newest(), newest(), ())[0].values[0] == 5.0
    store.close()


def test_a_damaged_file_is_set_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "t.sqlite"
    path.write_bytes(b"no database at all, but long enough to be taken for one" * 100)
    with caplog.at_level(logging.WARNING):
        store = open_samples(path)
    assert store is not None
    store.write([chunk(newest(), 1.0)])
    store.close()
    assert (tmp_path / "t.sqlite.damaged").read_bytes().startswith(b"no database")
    assert "was damaged" in caplog.text


def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "t.sqlite"
    SampleStore(path).close()
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA user_version=99")
    other.close()
    before = path.read_bytes()
    with caplog.at_level(logging.WARNING):
        assert open_samples(path) is None
    assert path.read_bytes() == before
    assert "newer version" in caplog.text
