"""A bench that a job over there carries out, whose connection is cut: it says so, and comes to its end."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.integration.host_process import SNDR, environment, serving, sndr
from tests.integration.remote.machines import Machines
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(400)
BENCH = ("--host", "gpu", "bench", "run", "quick", "--rounds", "4", "--json")


@contextmanager
def measuring(machines: Machines, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A bench over there, once its first round is done."""
    with serving(), machines.engine_host():
        assert sndr("host", "add", "gpu", "direct").code == 0
        started = sndr("--host", "gpu", "run", "--demo", "--detach")
        assert started.code == 0, started.err
        log = machines.folder / "bench.err"
        with log.open("w") as err:
            process = subprocess.Popen(
                [*SNDR, *words], env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=err, text=True,
            )  # fmt: skip
        try:
            assert wait_until(lambda: '"step"' in log.read_text(), 120), log.read_text()
            yield process
        finally:
            process.kill()
            process.communicate()
            assert sndr("host", "disconnect", "gpu").code == 0


def said(machines: Machines) -> str:
    """What the command said of its way so far."""
    return (machines.folder / "bench.err").read_text()


def test_a_bench_that_is_cut_goes_on_there_and_is_found_again(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SNDR_SSH_CONFIG", str(machines.config))
    with measuring(machines, *BENCH) as bench:
        machines.target.stop()
        assert wait_until(lambda: "connection to gpu was lost" in said(machines), 60), said(machines)
        machines.target.start()
        out, _ = bench.communicate(timeout=200)
        run = json.loads(out.splitlines()[-1])
        struck = [one for part in run["parts"] for one in part["figures"] if one["standing"] == "struck"]
        # Its code also tells of figures that are struck; those, with their reasons, are no matter of the cut.
        assert bench.returncode == 0, (struck, run["complete"], run["ended_by"])
        assert run["complete"]
        assert not run["ended_by"]
        assert "gpu is connected again" in said(machines)


def test_who_does_not_want_the_connection_any_more_is_told_that_it_goes_on_there(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SNDR_SSH_CONFIG", str(machines.config))
    with measuring(machines, *BENCH) as bench:
        assert sndr("host", "disconnect", "gpu").code == 0
        out, _ = bench.communicate(timeout=100)
        problem = json.loads(out.splitlines()[-1])["error"]
        assert problem["reason"] == "ssh_lost"
        assert "goes on there" in problem["message"]
        assert problem["fix"]["command"] == "sndr --host gpu jobs"
        listed = sndr("--host", "gpu", "jobs", "--json")
        assert listed.code == 0, listed.err
        assert problem["evidence"]["job"] in listed.out
