"""Rows of the database that nobody of us wrote: read as far as they make sense; they name no files."""

import asyncio
import json
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from pydantic import ValidationError

from engine_host.core.jobs import JobRunner
from engine_host.core.store import Store
from engine_host.engines.process.saved_engine import RememberedEngine
from engine_host.protocol.jobs import Job, JobKind, JobPage, JobState
from engine_host.protocol.launch.fit import Measured
from tests.hostile.effort import clear, fuzz
from tests.hostile.making.text import words
from tests.hostile.making.values import changed, nested, values, written
from tests.plan_samples import engine_of, plain_plan

pytestmark = pytest.mark.fuzz
JOB: dict[str, Any] = json.loads(
    Job(
        id="job-1",
        kind=JobKind.ENGINE_START,
        title="Start",
        touches="memory",
        state=JobState.RUNNING,
        created_at=1.0,
        command="sndr run",
    ).model_dump_json()
)
ENGINE: dict[str, Any] = json.loads(
    RememberedEngine(
        engine=engine_of(plain_plan()), pid=1234, born="b", socket="/run/plan-1.sock"
    ).model_dump_json()
)
bodies = st.one_of(
    st.sampled_from([JOB, ENGINE]).flatmap(changed).map(written),
    values.map(written),
    st.binary(max_size=60),
    st.sampled_from([nested("list", 20_000), b"\xff", b""]),
)


def test_rows() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sndr.sqlite"
        Store(path).close()
        loop = asyncio.new_event_loop()
        raw = sqlite3.connect(path)

        async def restore(store: Store) -> list[Job]:
            runner = JobRunner(lambda _event: None, store)
            runner.restore()
            return runner.all()

        def check(made: list[tuple[str, str, Any, bytes, bool]]) -> None:
            raw.execute("DELETE FROM document")
            for kind, name, at, body, as_text in made:
                value = "CAST(? AS TEXT)" if as_text else "?"
                raw.execute(
                    f"INSERT OR REPLACE INTO document VALUES (?, ?, ?, {value})", (kind, name, at, body)
                )
            raw.commit()
            store = Store(path)
            try:
                jobs = clear(lambda: loop.run_until_complete(restore(store)))
                page = JobPage(seq=1, jobs=tuple(jobs or ()))
                assert JobPage.model_validate_json(page.model_dump_json()) == page
                for text in store.newest("engine", 100):
                    for read in (RememberedEngine, Measured):
                        try:
                            found = read.model_validate_json(text)
                        except ValidationError:
                            continue
                        if isinstance(found, RememberedEngine):
                            for name in (found.engine.id, found.engine.plan.id):
                                assert "/" not in name
                                assert ".." not in name
                            assert not found.socket or Path(found.socket).suffix == ".sock"
            finally:
                store.close()

        times = st.one_of(st.floats(allow_nan=False), st.sampled_from(["x", b"\xff", 2**62]))
        one = st.tuples(st.sampled_from(["job", "engine"]), words, times, bodies, st.booleans())
        try:
            fuzz("rows of the database", st.lists(one, max_size=4), check)
        finally:
            raw.close()
            loop.close()


def test_a_damaged_database_is_a_clear_error() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sndr.sqlite"
        store = Store(path)
        for number in range(50):
            store.put("job", str(number), float(number), "x" * 500)
        store.close()
        sound = path.read_bytes()

        def check(places: list[tuple[int, int]]) -> None:
            made = bytearray(sound)
            for place, value in places:
                made[place % len(made)] = value
            for name in ("", "-wal", "-shm"):
                Path(f"{path}{name}").unlink(missing_ok=True)
            path.write_bytes(made)

            def use() -> None:
                opened = Store(path)
                try:
                    opened.newest("job", 100)
                    opened.put("job", "new", 1.0, "{}")
                    opened.prune("job", 10)
                    opened.get("job", "new")
                finally:
                    opened.close()

            clear(use)

        places = st.lists(st.tuples(st.integers(0, len(sound)), st.integers(0, 255)), min_size=1, max_size=30)
        fuzz("a damaged database", places, check)
