"""`sndr host install` through a jump host and real sshd: from nothing to an answer, and back to nothing."""

import json
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from engine_host import __version__
from engine_host.client.sync import ControlClient
from engine_host.protocol.operations import remote_hosts as ops
from engine_host.remote.install.there.wholeness import note_files
from tests.integration.host_process import SNDR, Ended, environment, serving, sndr
from tests.integration.remote.install.machines import tree
from tests.integration.remote.machines import Machines, fill, small_disk
from tests.waiting import wait_until

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
    with serving() as here:
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
        an_older_one_is_offered_the_update(here, machines)

        asked = sndr("host", "uninstall", "gpu", "--json")
        assert asked.code == 2, "without a yes nothing is removed"
        assert patient("host", "uninstall", "gpu", "--yes").code == 0
        listed = json.loads(sndr("host", "list", "--json").out)["hosts"][0]
        assert listed["version"] is None
        assert listed["engine_host_problem"]["fix"]["command"] == "sndr host install gpu"
        assert tree(machines.far) == before
        assert sndr("host", "disconnect", "gpu").code == 0


def an_older_one_is_offered_the_update(here: ControlClient, machines: Machines) -> None:
    """What runs there is made an older release; what the list offers brings this one."""
    machines.end_engine_host()
    root = machines.far / "data" / "host"
    release = (root / "current").resolve()
    # The release that is there already need not be made again: that is seen above.
    old = Path(shutil.copytree(release, root / "0.2.0-old", symlinks=True, copy_function=os.link))
    (root / "current").unlink()
    (root / "current").symlink_to(old.name)
    version = next(old.glob("lib/python*/site-packages/engine_host/__init__.py"))
    text = version.read_text(encoding="utf-8").replace(__version__, "0.2.0")
    version.unlink()
    version.write_text(text, encoding="utf-8")
    (old / "files.json").unlink()
    note_files(str(old))
    with machines.engine_host(python=str(root / "current" / "bin" / "python")):
        here.call(ops.CONNECT_HOST, name="gpu")
        assert wait_until(lambda: here.call(ops.REMOTE_HOST, name="gpu").version == "sndr 0.2.0", 60)
        (found,) = here.call(ops.REMOTE_HOST, name="gpu").findings
        assert found.id == "remote.older"
        assert found.fix is not None
        assert found.fix.command == "sndr host update gpu"
        updated = patient("host", "update", "gpu", "--offline", "--json")
        assert updated.code == 0, updated.out
        shown = here.call(ops.REMOTE_HOST, name="gpu")
        assert (shown.version, shown.findings) == (f"sndr {__version__}", ())
        assert (root / "current").resolve() == release
        assert (root / "previous").resolve() == old


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
        subprocess.run(["mount", "-o", "remount,rw,exec", machines.far], check=True)
        # On another disk, which is not there now: a host runs without settings, and not without its data.
        for name in ("config", "data"):
            (machines.far / name).symlink_to(f"/nowhere/{name}")
        refused = patient("host", "install", "gpu", "--json")
        assert refused.problem()["reason"] == "not_writable", refused.out
        assert "data on gpu is a file, or a link whose target is gone" in refused.problem()["message"]
        assert sorted(os.listdir(machines.far)) == ["config", "data"], "nothing was sent"
        (machines.far / "data").unlink()
        planned = json.loads(patient("host", "install", "gpu", "--dry-run", "--json").out)
        told = {one["id"]: one for one in planned["findings"]}
        assert told["remote.no-folder"]["severity"] == "warning", planned
        assert sndr("host", "disconnect", "gpu").code == 0


def test_a_disk_that_fills_up_and_a_python_that_goes_are_said_and_mended(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SNDR_SSH_CONFIG", str(machines.config))
    with small_disk(machines.far, 1300), serving():
        before = tree(machines.far)
        assert sndr("host", "add", "gpu", "direct").code == 0
        words = ("host", "install", "gpu", "--offline", "--json")
        with ThreadPoolExecutor(1) as pool:
            going = pool.submit(patient, *words)
            assert wait_until(lambda: any(machines.far.glob("data/host/*/lib")) or going.done(), 200)
            # The install writes, too, and one of both is told first.
            with suppress(OSError):
                fill(machines.far, leaving=0)
            failed = going.result()
        assert failed.problem()["reason"] == "disk_full", failed.out
        assert "Free some space there" in str(failed.problem()["fix"])
        (machines.far / "somebody else's").unlink()
        assert tree(machines.far) == before

        assert patient(*words).code == 0
        root = machines.far / "data" / "host"
        linked = next(
            one for one in (root / "current" / "bin").glob("python*") if os.readlink(one).startswith("/")
        )
        linked.unlink()
        linked.symlink_to("/nonexistent/python3")
        machines.end_engine_host()
        sndr("host", "disconnect", "gpu")
        assert sndr("host", "connect", "gpu").code == 0
        listed = json.loads(sndr("host", "list", "--json").out)["hosts"][0]
        assert listed["engine_host_problem"]["fix"]["command"] == "sndr host update gpu", listed
        planned = json.loads(patient(*words, "--dry-run").out)
        told = {one["id"]: one["message"] for one in planned["findings"]}
        assert "its Python, /nonexistent/python3, is missing" in told["remote.damaged"]
        mended = patient(*words)
        assert mended.code == 0, mended.out
        assert "/nonexistent/python3" in json.loads(mended.out.splitlines()[-1])["repaired"]
        assert json.loads(sndr("--host", "gpu", "status", "--json").out)["host"]["pid"]
        assert patient("host", "uninstall", "gpu", "--yes").code == 0
        assert tree(machines.far) == before
        assert sndr("host", "disconnect", "gpu").code == 0
