"""The record of an engine, from which a host removes files and ends a process: it names its own alone."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from engine_host.core.store import Store
from engine_host.engines.process.saved_engine import RememberedEngine, SavedEngines
from engine_host.engines.process.spawn import ProcessRecord
from tests.plan_samples import engine_of, plain_plan


def record(**fields: Any) -> str:
    made = RememberedEngine(
        engine=engine_of(plain_plan()), pid=1234, born="b/1", socket="/run/sndr/plan-1.sock"
    )
    return json.dumps(json.loads(made.model_dump_json()) | fields)


def test_a_record_reads_back_as_it_was() -> None:
    assert RememberedEngine.model_validate_json(record()).socket == "/run/sndr/plan-1.sock"
    assert RememberedEngine.model_validate_json(record(socket="")).pid == 1234


@pytest.mark.parametrize(
    "fields",
    [
        {"socket": "/srv/me/thesis.tex"},
        {"socket": "plan-1.sock"},
        {"socket": "/run/plan-2.sock"},
        {"pid": 0},
        {"pid": 1},
        {"pid": -5},
        {"pid": 2**40},
    ],
    ids=str,
)
def test_files_and_processes_of_others_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        RememberedEngine.model_validate_json(record(**fields))


@pytest.mark.parametrize("name", ["../../x", "engine-../x", "plan-/etc", "", "engine-", "x" * 500])
def test_ids_are_no_paths(name: str) -> None:
    engine = json.loads(record())["engine"]
    for wrong in ({**engine, "id": name}, {**engine, "plan": {**engine["plan"], "id": name}}):
        with pytest.raises(ValidationError):
            RememberedEngine.model_validate_json(record(engine=wrong, socket=""))


def test_what_ended_with_its_host_is_told_until_it_runs_again_or_is_old(tmp_path: Path) -> None:
    store = Store(tmp_path / "store.sqlite")
    saved, engine = SavedEngines(store), engine_of(plain_plan())
    try:
        for name, at in (("new", time.time()), ("old", 1000.0), ("unseen", None)):
            saved.ended_with_host(engine.model_copy(update={"name": name}), at)
        store.put("ended with host", "other", time.time(), "{}")
        assert [(one.name, one.command) for one in saved.ended()] == [
            ("new", engine.plan.command),
            ("unseen", engine.plan.command),
        ]
        ready = engine.model_copy(update={"name": "new", "ready_at": 2.0})
        saved.save(ready, ProcessRecord(1234, "b/1"), "")
        assert [one.name for one in saved.ended()] == ["unseen"]
        assert [one.engine.name for one in saved.running()] == ["new"]
    finally:
        store.close()
