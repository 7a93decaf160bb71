"""Verifications of engines as jobs."""

import asyncio
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from engine_host.bench.checks.subject import Subject
from engine_host.core.jobs import JobControl, JobRunner
from engine_host.operations.measurements import verify as module
from engine_host.operations.measurements.verify import VerifyOperations
from engine_host.protocol.bench.checks import VerifyEngine
from tests.unit.operations.measurements.test_bench import engine


def test_a_verification_lasts_as_long_when_the_clock_is_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = 5000.0

    async def verified(subject: Subject, *_: object) -> tuple[()]:
        nonlocal clock
        clock -= 3600.0
        return ()

    monkeypatch.setattr(module, "verified", verified)
    monkeypatch.setattr(time, "time", lambda: clock)
    subject = engine("tiny")

    async def live(_: object) -> Any:
        raise AssertionError("no patch is asked for")

    verifies = VerifyOperations(
        cast(JobRunner, None),
        tmp_path,
        lambda: [subject],
        lambda _: subject,
        live,
        lambda: "off",
    )
    control = cast(JobControl, SimpleNamespace(step=lambda *_: None))
    told = asyncio.run(verifies._carry_out(control, subject, VerifyEngine()))
    assert told["started_at"] == 5000.0
    assert told["seconds"] >= 0.0
