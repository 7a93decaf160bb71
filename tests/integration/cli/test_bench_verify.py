"""`sndr bench verify` with a real engine: the bundled model answers."""

import json

import httpx
import pytest

from engine_host.bench.kept.runs import folder_of
from engine_host.cli.output import Exit
from engine_host.client.sync import connected
from engine_host.protocol.bench.checks import CheckName, Outcome, VerifyEngine, VerifyLevel, VerifyReport
from engine_host.protocol.jobs import JobKind, JobState
from engine_host.protocol.operations import bench, table
from tests.integration.cli.test_bench_lab import Sndr, demo_runs, sndr  # noqa: F401
from tests.integration.host.conftest import wait_for


@pytest.mark.llamacpp
def test_the_bundled_model_is_verified(monkeypatch: pytest.MonkeyPatch, sndr: Sndr) -> None:  # noqa: F811
    with demo_runs(monkeypatch, sndr) as home:
        code, out, _ = sndr("bench", "verify", "--json")
        report = VerifyReport.model_validate(json.loads(out))
        assert (code, report.complete, report.failed) == (Exit.OK, True, ())
        outcomes = {check.name: check.outcome for check in report.checks}
        assert outcomes == {
            CheckName.ANSWERS: Outcome.PASSED,
            CheckName.PATCHES_LIVE: Outcome.SKIPPED,
            CheckName.KNOWN_ANSWER: Outcome.PASSED,
            CheckName.TOOL_CALL: Outcome.PASSED,
        }
        assert sndr("bench", "verify", "nobody")[0] == Exit.NOT_FOUND
        # Its verdicts are no runs of the lab.
        assert not folder_of(home / "data").exists()

        # Cancelled in its middle it tells what it judged, and the engine is idle.
        with connected() as client:
            job = client.call(bench.VERIFY_ENGINE, VerifyEngine(level=VerifyLevel.STRESS))

            def at_code() -> bool:
                step = client.call(table.JOB, id=job.id).step
                return step is not None and step.number >= 5

            wait_for(at_code, "the long answer")
            client.call(table.CANCEL_JOB, id=job.id)
            wait_for(lambda: client.call(table.JOB, id=job.id).ended, "its end")
            ended = client.call(table.JOB, id=job.id)
            assert ended.state is JobState.CANCELLED
            assert ended.error is not None
            partial = VerifyReport.model_validate(ended.error.evidence["report"])
            assert not partial.complete
            assert len(partial.checks) >= 4

            transport = httpx.HTTPTransport(uds=str(next((home / "run").glob("plan-*.sock"))))
            with httpx.Client(transport=transport, base_url="http://engine") as engine:
                wait_for(
                    lambda: not any(slot["is_processing"] for slot in engine.get("/slots").json()), "idle"
                )

        # Where the settings ask for it, a start is verified by itself.
        assert sndr("settings", "set", "engine.verify", "smoke")[0] == Exit.OK
        assert sndr("run", "--demo", "--name", "other", "--detach", "--json")[0] == Exit.OK
        with connected() as client:

            def verified() -> bool:
                jobs = client.call(table.JOBS).jobs
                return any(
                    one.kind is JobKind.BENCH_VERIFY and one.state is JobState.DONE and "other" in one.title
                    for one in jobs
                )

            wait_for(verified, "the verification of a start")
