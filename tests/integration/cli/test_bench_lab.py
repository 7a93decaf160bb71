"""`sndr bench run`, `list` and `report`, with the process that measures; the bundled model answers."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from engine_host.bench.kept import runs as kept_runs
from engine_host.cli import main
from engine_host.cli.output import Exit
from engine_host.cli.start.host import connected
from engine_host.client.bench_reports.for_others import run_for_others
from engine_host.core.paths import Folders
from engine_host.protocol.bench.checks import CheckName, Outcome
from engine_host.protocol.bench.comparison import LabComparison
from engine_host.protocol.bench.lab import LabPage, LabRun, Quantity, RunBench, Standing, WorkloadName
from engine_host.protocol.bench.sweeps import SweepReport
from engine_host.protocol.jobs import JobState
from engine_host.protocol.operations import bench as bench_ops
from engine_host.protocol.operations import table as ops
from tests.integration.host.conftest import home_left_empty, wait_for
from tests.unit.cli.bench.test_lab import a_run

Sndr = Callable[..., tuple[int, str, str]]


@pytest.fixture
def sndr(capsys: pytest.CaptureFixture[str]) -> Sndr:
    """Run a command; its exit code, stdout and stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@contextlib.contextmanager
def demo_runs(monkeypatch: pytest.MonkeyPatch, sndr: Sndr) -> Iterator[Path]:
    """The bundled model in a home of its own."""
    with home_left_empty("sndr-l-") as home:
        monkeypatch.setenv("SNDR_HOME", str(home))
        assert sndr("run", "--demo", "--detach", "--json")[0] == Exit.OK
        try:
            yield home
        finally:
            assert sndr("quit")[0] == Exit.OK


def test_kept_runs_are_listed_and_shown(sndr: Sndr, home: Path) -> None:
    assert "Nothing was measured here yet" in sndr("bench", "list")[1]
    # As the runs, sweeps are read where no host runs.
    assert "No sweep of speculation, kv or patch was kept" in sndr("bench", "sweeps")[1]
    code, _, err = sndr("bench", "sweeps", "latest")
    assert (code, "$ sndr bench sweep --help" in err) == (4, True), err
    assert sndr("bench", "report")[0] == 4
    run = a_run()
    folder = kept_runs.folder_of(Folders.resolve().data)
    kept_runs.save(folder, run)
    (folder / "20260102-000000-quick-bbbb.json").write_text("{")
    code, out, _ = sndr("bench", "list")
    assert (code, "[struck 35.0 tok/s]" in out, "\x1b" in out) == (0, True, False)
    assert "20260102-000000-quick-bbbb.json cannot be read." in out
    assert LabRun.model_validate(json.loads(sndr("bench", "report", "aaaa", "--json")[1])) == run
    assert "~~35.0 tok/s~~" in sndr("bench", "report", "20260101", "--md")[1]
    assert "<s>35.0 tok/s</s>" in sndr("bench", "report", "aaaa", "--html")[1]
    assert sndr("bench", "report", "2026")[0] == 2
    other = a_run(id="20260103-000000-quick-cccc")
    kept_runs.save(folder, other)
    code, out, _ = sndr("bench", "compare", "aaaa", "latest")
    assert (code, "not judged: struck in A: 1 of 5 answers: it is empty" in out) == (0, True)
    assert "\x1b" not in out
    found = LabComparison.model_validate(json.loads(sndr("bench", "compare", "aaaa", "cccc", "--json")[1]))
    assert (found.a.id, found.b.id, found.in_turns) == (run.id, other.id, False)
    assert "| A | B | B is |" in sndr("bench", "compare", "aaaa", "cccc", "--md")[1]
    assert sndr("bench", "compare", "aaaa", "aaaa")[0] != 0
    # A run of somebody else is a file.
    file = home / "other.json"
    file.write_text(sndr("bench", "report", "aaaa", "--json")[1])
    code, out, _ = sndr("bench", "compare", str(file), "cccc", "--json")
    assert (code, LabComparison.model_validate(json.loads(out)).a.id) == (0, run.id)
    code, out, _ = sndr("bench", "report", str(file))
    assert (code, "[struck 35.0 tok/s]" in out) == (0, True)
    file.write_text('{"id": ["\x1b[31m"')
    code, _, err = sndr("bench", "reproduce", str(file))
    assert (code, "cannot be read as a run" in err, "\x1b" in err) == (2, True, False)
    assert sndr("bench", "compare", "aaaa", "nobody")[0] == Exit.NOT_FOUND
    assert sndr("bench", "report", "--md", "--json")[0] == 2
    assert sndr("bench", "report", "--", "--help")[0] == 4


@pytest.mark.parametrize("address", ["ftp://me:secret@x", "http://x:99999", "http://[", "http://x/\x1b"])
def test_what_is_no_address_is_refused_and_not_repeated(sndr: Sndr, home: Path, address: str) -> None:
    code, out, err = sndr("bench", "run", "quick", "--url", address, "--model", "m")
    assert (code, out) == (2, "")
    assert "no address of a server" in err
    assert "secret" not in err


def test_a_server_that_is_not_there_is_said_and_nothing_is_kept(sndr: Sndr, home: Path) -> None:
    code, out, _ = sndr("bench", "run", "quick", "--url", "http://127.0.0.1:1", "--model", "m", "--json")
    assert code == Exit.ENGINE
    assert json.loads(out)["error"]["reason"] == "engine_not_ready"
    assert not list(home.rglob("*-quick-*.json"))


@pytest.mark.llamacpp
def test_the_bundled_model_is_measured_and_kept(monkeypatch: pytest.MonkeyPatch, sndr: Sndr) -> None:
    with demo_runs(monkeypatch, sndr):
        code, out, _ = sndr("bench", "run", "quick", "--seed", "7", "--json")
        # Its steps are elsewhere: what a program reads is the run.
        run = LabRun.model_validate(json.loads(out))
        assert [one.name for one in run.checks] == [CheckName.TOOL_CALL]
        assert run.checks[0].outcome is Outcome.PASSED, run.checks
        # What so small a model says may well go in circles; its figures are struck then.
        assert code == (Exit.FAILED if run.struck else Exit.OK)
        assert run.complete
        assert (run.seed, run.engine.engine, run.engine.model) == (7, "llama.cpp", "sndr-demo")
        assert run.engine.argv
        assert len(run.samples) == 6
        assert all(sample.tokens and sample.prompt_tokens and sample.text for sample in run.samples)
        for figure in run.parts[0].figures:
            assert (figure.value is None) == (figure.standing is Standing.NOT_MEASURED)
            assert figure.why or figure.standing is Standing.PUBLISHED
        total = next(one for one in run.parts[0].figures if one.quantity is Quantity.TOTAL)
        assert total.value is not None
        assert total.value > 0

        # Any server is measured by its address: this one's endpoint is one.
        url = json.loads(sndr("status", "--json")[1])["host"]["endpoint"]["local_url"]
        words = ("bench", "run", "quick", "--url", url, "--model", "sndr-demo", "--seed", "7", "--json")
        through = LabRun.model_validate(json.loads(sndr(*words)[1]))
        assert [one.salt for one in through.samples] == [one.salt for one in run.samples]
        assert [one.prompt_tokens for one in through.samples] == [one.prompt_tokens for one in run.samples]

        page = LabPage.model_validate(json.loads(sndr("bench", "list", "--json")[1]))
        assert {one.id for one in page.runs} == {run.id, through.id}
        told = LabRun.model_validate_json(sndr("bench", "report", run.id, "--json")[1])
        assert told == run_for_others(run)
        assert (told.parts, told.samples, told.engine.model) == (run.parts, run.samples, run.engine.model)
        assert told.engine.address == "a socket"
        assert sndr("bench", "run", "quick", "--engine", "nobody")[0] == Exit.NOT_FOUND

        # A sweep starts it anew for each value, and leaves it as it was; its prompts have an exact length.
        before = json.loads(sndr("status", "--json")[1])["engines"][0]["plan"]["argv"]
        code, out, err = sndr("bench", "sweep", "kv", "f16", "q8_0", "--rounds", "1", "--json")
        swept = SweepReport.model_validate(json.loads(out))
        assert (swept.sweep.complete, swept.sweep.restored) == (True, True), err
        assert [one.engine.settings["kv_type_k"] for one in swept.runs] == ["f16", "q8_0"]
        after = json.loads(sndr("status", "--json")[1])["engines"][0]["plan"]["argv"]
        assert [word for word in after if "plan-" not in word] == [
            word for word in before if "plan-" not in word
        ]
        _, out, _ = sndr("bench", "run", "serving", "--part", "baseline", "--rounds", "1", "--json")
        served = LabRun.model_validate(json.loads(out))
        assert {one.prompt_tokens for one in served.samples} == {256}

        # In turns with a second one: every round of both, and the verdicts over pairs of rounds.
        assert sndr("run", "--demo", "--name", "other", "--detach", "--json")[0] == Exit.OK
        code, out, _ = sndr("bench", "compare", "sndr-demo", "other", "--repeat", "6", "--json")
        found = LabComparison.model_validate(json.loads(out))
        # The same model says the same, where it repeats itself.
        parity = next(one for one in found.b.checks if one.name is CheckName.GREEDY_PARITY)
        assert parity.outcome is not Outcome.FAILED, parity
        assert code == (Exit.FAILED if found.a.struck or found.b.struck else Exit.OK)
        assert found.in_turns
        assert (found.a.engine.model, found.b.engine.model) == ("sndr-demo", "other")
        assert [found.a.parts[0].done, found.b.parts[0].done] == [6, 6]
        assert not {"model", "engine", "processor"} & {one.name for one in found.differing}
        for one in found.figures:
            assert (one.verdict is None) == ("not judged" in one.words)
            # An answer that ends early tells no decode, and its round is left out.
            assert one.rounds <= 6
        assert sndr("bench", "remove", found.b.id)[0] == Exit.OK
        assert sndr("bench", "compare", found.a.id, found.b.id)[0] == Exit.NOT_FOUND


@pytest.mark.llamacpp
def test_an_interrupt_leaves_a_partial_run_and_an_idle_engine(
    monkeypatch: pytest.MonkeyPatch, sndr: Sndr
) -> None:
    with demo_runs(monkeypatch, sndr) as home:
        process = subprocess.Popen(
            [sys.executable, "-m", "engine_host", "bench", "run", "canonical"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
        assert process.stderr is not None
        # After the first measured answer there is something to keep.
        for line in process.stderr:
            if b" 1 of " in line and b"warm-up" not in line:
                break
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
        assert process.returncode == Exit.INTERRUPTED
        assert b"PARTIAL: cancelled" in said
        (run,) = kept_runs.page(kept_runs.folder_of(home / "data")).runs
        assert (run.complete, run.ended_by) == (False, "cancelled")
        assert run.cut is not None
        # Of essay and code the first was begun, and its end is known by the engine's own counters.
        assert (run.cut.whole, len(run.cut.cut), len(run.cut.missing), run.cut.idle) == ((), 1, 1, True)
        assert run.cut.sentence.encode() in said
        assert not any(slot["is_processing"] for slot in engine_says(home, "/slots").json())


@pytest.mark.llamacpp
def test_a_burst_that_is_cancelled_keeps_no_slot_for_those_that_have_gone(
    monkeypatch: pytest.MonkeyPatch, sndr: Sndr
) -> None:
    with demo_runs(monkeypatch, sndr) as home:
        slots = len(engine_says(home, "/slots").json())
        process = subprocess.Popen(
            [sys.executable, "-m", "engine_host", "bench", "run", "serving", "--part", "burst"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )

        def at_work(name: str) -> int:
            lines = engine_says(home, "/metrics").text.splitlines()
            told = [line.split()[1] for line in lines if line.startswith(f"llamacpp:requests_{name} ")]
            return sum(map(int, told))

        wait_for(lambda: at_work("processing") == slots and at_work("deferred"), "the burst")
        assert at_work("deferred") <= 1, "it reads the prompts of those that have gone, one after the other"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode == Exit.INTERRUPTED
        assert b"at work" not in said, said
        assert at_work("processing") + at_work("deferred") == 0


# What each needs to be seen at work; a prompt of 10,000 tokens has no room in the bundled model's context.
EACH = (
    *(RunBench(workload=name) for name in WorkloadName if not name.value.startswith(("serving", "prefill-"))),
    *(
        RunBench(workload=WorkloadName.SERVING, only=(name,))
        for name in ("burst", "mixed prompts", "shared prefix")
    ),
)


@pytest.mark.llamacpp
def test_every_workload_leaves_an_idle_engine_whenever_it_is_cancelled(
    monkeypatch: pytest.MonkeyPatch, sndr: Sndr
) -> None:
    with demo_runs(monkeypatch, sndr) as home, connected() as client:
        assert {asked.workload for asked in EACH} >= set(WorkloadName) - {
            WorkloadName.PREFILL_10K,
            WorkloadName.PREFILL_90K,
        }
        for asked, later in [*((one, False) for one in EACH), *((one, True) for one in EACH[:1])]:
            job = client.call(bench_ops.RUN_BENCH, asked)

            def at_its_moment(name: str = job.id, later: bool = later) -> bool:
                # As the first request is read or answered, or once there is something to keep.
                step = client.call(ops.JOB, id=name).step
                return at_work(home) > 0 and (not later or (step is not None and "of 5" in str(step.detail)))

            def over(name: str = job.id) -> bool:
                return client.call(ops.JOB, id=name).ended

            wait_for(at_its_moment, f"{asked.command} at work")
            client.call(ops.CANCEL_JOB, id=job.id)
            wait_for(over, f"the end of {asked.command}")
            assert client.call(ops.JOB, id=job.id).state is JobState.CANCELLED, asked.command
            assert at_work(home) == 0, asked.command
        # Nothing that was measured is lost, and all of it is marked.
        runs = client.call(bench_ops.BENCH_RUNS).runs
        assert WorkloadName.QUICK in {run.workload for run in runs}
        assert {(run.complete, run.ended_by, run.measuring) for run in runs} == {(False, "cancelled", None)}
        assert all(run.cut is not None and run.cut.idle for run in runs)


def at_work(home: Path) -> int:
    """Requests that the engine of a home says to answer or to hold back."""
    lines = engine_says(home, "/metrics").text.splitlines()
    names = tuple(f"llamacpp:requests_{name} " for name in ("processing", "deferred"))
    return sum(int(line.split()[1]) for line in lines if line.startswith(names))


def engine_says(home: Path, path: str) -> httpx.Response:
    """What the engine of a home answers on its own socket."""
    transport = httpx.HTTPTransport(uds=str(next((home / "run").glob("plan-*.sock"))))
    with httpx.Client(transport=transport, base_url="http://engine", timeout=60) as client:
        return client.get(path)
