"""How the overlay gets into processes, and what each says: real processes, with a FAKE vllm of a few lines.

Starting the real vLLM with three processes takes a minute; tests/integration/host/vllm/test_overlay.py does.
"""

import asyncio
import json
import os
import socket
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from engine_host.overlay.bundle import install_pth
from engine_host.overlay.ledger import LedgerReader
from engine_host.overlay.probing import probe
from engine_host.protocol.patches import PatchOutcome, ProcessRole
from tests.pace import within
from tests.unit.overlay.fake_vllm import FakeVllm, hook, rebind, text

SCHEDULER = "vllm.scheduler"
LIMIT = text(SCHEDULER, "LIMIT = 10", "LIMIT = 20")
COUNTED = """
from sndr_overlay.hits import count

def replacement(original):
    def patched(request, *, streams=1):
        count("bound")
        return original(request) + 100
    return patched
"""
SCHEDULE = rebind(SCHEDULER, "schedule", "(request, *, streams = ...)")
COUNTS = "[probe]\ncounts = true\n"
PRINT = "from vllm.scheduler import schedule; print(schedule(1))"


def test_the_pth_line_lets_it_into_a_venv_only_when_it_is_asked_for(vllm: FakeVllm, tmp_path: Path) -> None:
    vllm.patch("limit", LIMIT)
    venv.create(tmp_path / "venv", symlinks=True)
    python = tmp_path / "venv" / "bin" / "python"
    (site_packages,) = (tmp_path / "venv" / "lib").glob("python3*/site-packages")
    install_pth(site_packages)
    once = (site_packages / "sndr_overlay.pth").read_bytes()
    install_pth(site_packages)
    assert (site_packages / "sndr_overlay.pth").read_bytes() == once
    assert once.count(b"\n") == 1, "site runs it line by line"
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    variables |= {"PYTHONPATH": str(vllm.packages)}
    assert vllm.run(PRINT, python=(str(python),), environment=variables).stdout == "11\n"
    variables |= vllm.bundle().environment(vllm.ledger, in_own_venv=True)
    ran = vllm.run(PRINT, python=(str(python),), environment=variables)
    assert ran.stdout == "21\n"
    assert ran.settled("limit") == ("applied", None)


def test_a_process_that_imports_no_vllm_pays_less_than_a_millisecond(vllm: FakeVllm) -> None:
    """CPU time, and the lowest of a few processes: the first one compiles, other work only ever adds."""
    vllm.patch("limit", LIMIT)
    bundle = vllm.bundle()
    script = (
        "import sys, time; began = time.process_time(); import sndr_overlay.start; "
        "print(time.process_time() - began, *sorted(n for n in sys.modules if n.startswith('sndr_overlay')))"
    )
    spent = []
    for _ in range(10):
        out = vllm.run(script, environment={"PYTHONPATH": str(bundle.folder)}).stdout.split()
        spent.append(float(out[0]))
        assert out[1:] == ["sndr_overlay", *(f"sndr_overlay.{n}" for n in ("finder", "start", "targets"))]
    assert within(min(spent), 0.001)


def test_a_bundle_that_is_gone_does_not_stop_a_venv(vllm: FakeVllm, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", symlinks=True)
    python = tmp_path / "venv" / "bin" / "python"
    (site_packages,) = (tmp_path / "venv" / "lib").glob("python3*/site-packages")
    install_pth(site_packages)
    variables = {"PYTHONPATH": str(vllm.packages), "SNDR_OVERLAY": str(tmp_path / "gone")}
    assert vllm.run(PRINT, python=(str(python),), environment=variables).stdout == "11\n"


def test_the_persons_own_sitecustomize_still_runs(vllm: FakeVllm) -> None:
    vllm.patch("limit", LIMIT)
    (vllm.packages / "sitecustomize.py").write_text("import sys\nsys.theirs = 7\n")
    ran = vllm.run(f"import sys; print(sys.theirs); {PRINT}")
    assert ran.stdout == "7\n21\n"


def test_the_persons_own_sitecustomize_runs_without_the_variable(vllm: FakeVllm) -> None:
    vllm.patch("limit", LIMIT)
    (vllm.packages / "sitecustomize.py").write_text("import sys\nsys.theirs = 7\n")
    variables = vllm.environment()
    del variables["SNDR_OVERLAY"]
    assert vllm.run(f"import sys; print(sys.theirs); {PRINT}", environment=variables).stdout == "7\n11\n"


PROCESSES = """
import multiprocessing, sys

def work(queue):
    from vllm.scheduler import schedule
    queue.put(schedule(1))

if __name__ == "__main__":
    way = sys.argv[2]
    from vllm.scheduler import schedule
    context = multiprocessing.get_context(way)
    queue = context.Queue()
    names = ["EngineCore_DP0", "VllmWorker-3", "ApiServer_1"]
    children = [context.Process(target=work, args=(queue,), name=name) for name in names]
    for child in children:
        child.start()
    print([queue.get(timeout=30) for _ in children], schedule(1))
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0, 0, 0]
"""


@pytest.mark.parametrize("way", ["spawn", "fork"])
def test_every_process_says_what_it_has_with_its_role_and_rank(vllm: FakeVllm, way: str) -> None:
    vllm.patch("limit", LIMIT)
    vllm.patch("bound", SCHEDULE, COUNTED)
    ran = vllm.run(PROCESSES, "serve", way)
    assert ran.stdout == "[121, 121, 121] 121\n"
    reader = LedgerReader(vllm.ledger, ["limit", "bound"])
    reader.read()
    processes = reader.processes()
    assert [(one.role, one.rank) for one in processes] == [
        (ProcessRole.API_SERVER, None),
        (ProcessRole.API_SERVER, None),
        (ProcessRole.ENGINE_CORE, None),
        (ProcessRole.WORKER, 3),
    ]
    assert all(one.count(PatchOutcome.APPLIED) == 2 for one in processes)
    assert len({one.pid for one in processes}) == 4


def test_a_forked_helper_says_nothing(vllm: FakeVllm) -> None:
    vllm.patch("limit", LIMIT)
    vllm.run(
        """
        import multiprocessing
        import vllm.scheduler
        child = multiprocessing.get_context("fork").Process(target=print)
        child.start()
        child.join()
        """
    )
    assert len(list(vllm.ledger.glob("*.jsonl"))) == 1


def test_a_process_that_replaces_itself_counts_once(vllm: FakeVllm) -> None:
    vllm.patch("limit", LIMIT)
    script = vllm.root / "again.py"
    script.write_text(PRINT)
    ran = vllm.run(
        f"import os, sys, vllm.scheduler; os.execv(sys.executable, [sys.executable, {str(script)!r}])"
    )
    assert ran.stdout == "21\n"
    assert [line["event"] for line in ran.ledger].count("start") == 2
    reader = LedgerReader(vllm.ledger, ["limit"])
    reader.read()
    (process,) = reader.processes()
    assert len(process.results[0].operations) == 1


ASKED = """
import json, os, socket, sys
import vllm.scheduler as scheduler
{before}
scheduler.schedule(1)
scheduler.schedule(1)
{after}
path = os.path.join(os.environ["SNDR_OVERLAY_LEDGER"], f"{{os.getpid()}}.sock")
print(oct(os.stat(path).st_mode & 0o777))
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(path)
    print(b"".join(iter(lambda: connection.recv(65536), b"")).decode())
"""


def asked(vllm: FakeVllm, before: str = "", after: str = "") -> dict[str, dict[str, object]]:
    """What a process says of its patches to a probe."""
    mode, answer = vllm.run(ASKED.format(before=before, after=after)).stdout.splitlines()
    assert mode == "0o600"
    found: dict[str, dict[str, object]] = json.loads(answer)["patches"]
    return found


def test_a_probe_tells_what_is_live_and_how_often_it_ran(vllm: FakeVllm) -> None:
    vllm.patch("limit", LIMIT)
    vllm.patch("bound", SCHEDULE + COUNTS, COUNTED)
    vllm.patch("drifted", text(SCHEDULER, "LIMIT = 11", "x"))
    vllm.patch("later", text("vllm.worker", "RANK = 0", "RANK = 5"))
    found = asked(vllm)
    assert found["limit"] == {
        "live": True,
        "why": "",
        "hits": None,
        "symbols": [{"target": SCHEDULER, "ours": True, "copies": []}],
    }
    assert (found["bound"]["live"], found["bound"]["hits"]) == (True, 2)
    assert (found["drifted"]["live"], found["drifted"]["why"]) == (False, "anchor_missing")
    assert (found["later"]["live"], found["later"]["why"]) == (
        False,
        "none of its modules was imported here",
    )


def test_a_probe_notices_what_replaced_a_patch(vllm: FakeVllm) -> None:
    vllm.patch("bound", SCHEDULE, COUNTED)
    found = asked(vllm, after="scheduler.schedule = lambda request: 1")
    assert (found["bound"]["live"], found["bound"]["why"]) == (False, "another code has taken its place")


def test_a_probe_notices_copies_of_the_original(vllm: FakeVllm) -> None:
    # Bound while the module was still being executed, so before any rebind of it.
    vllm.write("early", "from vllm.scheduler import schedule as taken")
    source = (vllm.packages / "vllm" / "scheduler.py").read_text()
    vllm.write("scheduler", source + "\nimport vllm.early\n")
    vllm.patch("bound", SCHEDULE, COUNTED)
    found = asked(vllm)
    assert found["bound"]["live"] is False
    assert found["bound"]["why"] == "the original is still held by vllm.early.taken"


def test_a_patch_below_another_is_live_as_long_as_both_are(vllm: FakeVllm) -> None:
    vllm.patch("below", SCHEDULE + COUNTS, COUNTED.replace("bound", "below"))
    vllm.patch("above", SCHEDULE + COUNTS, COUNTED.replace("bound", "above"))
    found = asked(vllm)
    assert [(found[name]["live"], found[name]["hits"]) for name in ("below", "above")] == [(True, 2)] * 2
    found = asked(vllm, after="scheduler.schedule = lambda request: 1")
    assert [found[name]["live"] for name in ("below", "above")] == [False, False]


def test_a_patch_of_hooks_is_live_where_vllm_asked_for_it(vllm: FakeVllm) -> None:
    vllm.patch("limit", LIMIT)
    vllm.patch("named", hook("middleware"), "class replacement: pass\n")
    assert asked(vllm)["named"]["why"] == "vLLM has not asked for it here"
    (name,) = vllm.bundle().middleware
    module, _, attribute = name.rpartition(".")
    assert asked(vllm, before=f"from {module} import {attribute}")["named"]["live"] is True


def test_a_patch_says_which_of_its_modules_make_it_live(vllm: FakeVllm) -> None:
    edits = LIMIT + text("vllm.worker", "RANK = 0", "RANK = 5")
    vllm.patch("watched", edits + '[probe]\nmodules = ["vllm.worker"]\n')
    found = asked(vllm)["watched"]
    assert (found["live"], found["why"]) == (False, "none of its modules was imported here")
    found = asked(vllm, before="import vllm.worker")["watched"]
    assert found["live"] is True
    symbols = found["symbols"]
    assert isinstance(symbols, list)
    assert [symbol["target"] for symbol in symbols] == ["vllm.worker"]


def test_the_host_asks_and_a_process_that_is_gone_or_strange_is_left_out(
    vllm: FakeVllm, tmp_path: Path
) -> None:
    vllm.patch("limit", LIMIT)
    script = tmp_path / "waits.py"
    script.write_text("import vllm.scheduler, sys; print('up', flush=True); sys.stdin.read()")
    process = subprocess.Popen(
        [sys.executable, str(script)],
        env=vllm.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process, socket.socket(socket.AF_UNIX) as silent:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        reader = LedgerReader(vllm.ledger, ["limit"])
        reader.read()
        silent_path = vllm.ledger / "silent"
        silent.bind(str(silent_path))
        silent.listen()
        sockets = reader.sockets() | {1: str(vllm.ledger / "gone"), 2: str(silent_path)}
        # The same socket under another number: its answer is not taken for the other's.
        sockets[3] = sockets[process.pid]
        answers = asyncio.run(probe(sockets, seconds=0.5))
    assert set(answers) == {process.pid}
    assert answers[process.pid]["limit"].live
    reader.probed(process.pid, answers[process.pid])
    reader.probed(99, answers[process.pid])
    assert reader.result(process.pid, "limit").probe is not None
