"""A fake is caught where it answers what no host would, and where it is asked so."""

from pathlib import Path
from typing import Any

import pytest

from engine_host.client.sync import ControlClient
from engine_host.protocol.jobs import Job
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations import table as ops
from tests.unit.cli.fake_host import fake_host
from tests.wire_contract import WireContract

CONTRACT = WireContract()
JOBS = {"seq": 0, "jobs": []}


def test_a_path_is_the_operation_whose_names_it_fills() -> None:
    assert CONTRACT.operation("GET", "/v1/patches/check") is ops.CHECK_PATCHES
    assert CONTRACT.operation("GET", "/v1/patches/a") is ops.PATCH
    assert CONTRACT.operation("DELETE", "/v1/requests/r") is endpoint_ops.CANCEL_REQUEST
    assert CONTRACT.operation("PUT", "/v1/engines") is None


@pytest.mark.parametrize(
    ("status", "answer", "fault"),
    [
        (200, JOBS, ""),
        (201, JOBS, "answers with 200, not 201"),
        (200, {"jobs": []}, "Field required"),
        (200, {**JOBS, "job": []}, "there is no job"),
        (200, {**JOBS, "jobs": "none"}, "valid array"),
        (500, {"error": {"reason": "internal", "message": "x"}}, ""),
        (500, {"reason": "internal"}, "Field required"),
        (404, {"error": {"reason": "internal", "message": "x"}}, "internal comes with 500, not 404"),
        (404, {"error": {"reason": "not_found", "message": "x"}}, "is never refused with not_found"),
    ],
)
def test_answers(status: int, answer: Any, fault: str) -> None:
    found = CONTRACT.answer_fault(ops.JOBS, status, answer)
    assert (fault in found) if fault else not found, found


def test_requests() -> None:
    assert not CONTRACT.request_fault(ops.PLAN, {}, {"model": "m"})
    assert "modell" in CONTRACT.request_fault(ops.PLAN, {}, {"modell": "m"})
    assert "takes no body" in CONTRACT.request_fault(ops.JOBS, {}, {"x": 1})
    assert "takes no lines" in CONTRACT.request_fault(ops.PATCH, {"lines": "3"}, None)
    assert not CONTRACT.request_fault(ops.PATCH, {"vllm": "0.32.0"}, None)


def jobs_of(home: Path, *, lies: bool) -> tuple[Job, ...]:
    """The jobs of a host that answers with a key that there is not."""
    with fake_host(home) as host:
        host.lies = lies
        host.answers["GET /v1/jobs"] = (200, {**JOBS, "job": []})
        with ControlClient(host.folders) as client:
            return client.call(ops.JOBS).jobs


def test_a_test_with_such_an_answer_fails_at_its_end(home: Path) -> None:
    with pytest.raises(AssertionError, match="there is no job"):
        jobs_of(home, lies=False)
    assert jobs_of(home, lies=True) == (), "unless it says that the host lies"
