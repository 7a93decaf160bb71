"""`sndr host install` through a jump host and real sshd: from nothing to an answer, and back to nothing."""

import json
import subprocess
from pathlib import Path

import pytest

from engine_host import __version__
from tests.integration.host_process import SNDR, Ended, environment, serving, sndr
from tests.integration.remote.install.machines import tree
from tests.integration.remote.machines import Machines, small_disk

pytestmark = pytest.mark.timeout(600)


def patient(*arguments: str) -> Ended:
    """Run a command that may take minutes on a busy machine."""
    ended = subprocess.run(
        [*SNDR, *arguments],
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def test_from_nothing_to_an_answer_and_back(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNDR_SSH_CONFIG", str(machines.config))
    before = tree(machines.far)
    with serving():
        assert sndr("host", "add", "gpu").code == 0
        planned = patient("host", "install", "gpu", "--offline", "--dry-run")
        assert planned.code == 0, planned.err
        assert f"+ {machines.far}/data/host/current -> " in planned.out
        assert tree(machines.far) == before, "a dry run changes nothing"
        nothing = sndr("host", "update", "gpu", "--json")
        assert nothing.code == 4
        assert nothing.problem()["fix"]["command"] == "sndr host install gpu"

        installed = patient("host", "install", "gpu", "--offline", "--demo", "--json")
        assert installed.code == 0, installed.out
        done = json.loads(installed.out.splitlines()[-1])
        assert "SNDR" in done["demo_answer"]
        # Whoever is told of the end is told at once what runs there now.
        listed = json.loads(sndr("host", "list", "--json").out)["hosts"][0]
        assert listed["version"] == f"sndr {__version__}"
        assert listed["control_socket"] is not None
        shown = sndr("--host", "gpu", "status", "--json")
        assert shown.code == 0, shown.err
        pid = json.loads(shown.out)["host"]["pid"]
        assert str(machines.far) in Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8")
        listed = json.loads(sndr("host", "list", "--json").out)["hosts"][0]
        assert (listed["state"], listed["findings"]) == ("connected", [])

        asked = sndr("host", "uninstall", "gpu", "--json")
        assert asked.code == 2, "without a yes nothing is removed"
        assert patient("host", "uninstall", "gpu", "--yes").code == 0
        listed = json.loads(sndr("host", "list", "--json").out)["hosts"][0]
        assert listed["version"] is None
        assert listed["engine_host_problem"]["fix"]["command"] == "sndr host install gpu"
        assert tree(machines.far) == before
        assert sndr("host", "disconnect", "gpu").code == 0


def test_a_home_that_runs_no_programs_or_takes_no_files_is_said_before_anything_is_sent(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SNDR_SSH_CONFIG", str(machines.config))
    with small_disk(machines.far, 900, "noexec"), serving():
        assert sndr("host", "add", "gpu", "direct").code == 0
        refused = patient("host", "install", "gpu", "--json")
        assert refused.problem()["reason"] == "unsupported", refused.out
        assert "is mounted noexec" in refused.problem()["message"]
        subprocess.run(["mount", "-o", "remount,ro,exec", machines.far], check=True)
        refused = patient("host", "install", "gpu", "--json")
        assert refused.problem()["reason"] == "not_writable", refused.out
        assert "is mounted read-only" in refused.problem()["message"]
        assert not list(machines.far.iterdir())
        assert sndr("host", "disconnect", "gpu").code == 0
