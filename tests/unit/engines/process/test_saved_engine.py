"""The record of an engine, from which a host removes files and ends a process: it names its own alone."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from engine_host.engines.process.saved_engine import RememberedEngine
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
