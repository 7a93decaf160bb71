"""Ctrl+C at each step of `sndr host install`, over a real sshd: nothing of it is left there."""

import signal

import pytest

from engine_host.remote.install.installing import STEPS
from tests.integration.host_process import serving, sndr, started
from tests.integration.remote.install.machines import pids_in, tree
from tests.integration.remote.machines import Machines
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(300)
BEFORE = STEPS[:3]
"""The steps that change nothing there."""


def cancelled_at(step: str) -> str:
    """Press Ctrl+C once an install has come to a step, and tell what it says then."""
    with started("host", "install", "gpu", "--offline") as install:
        assert install.stderr is not None
        seen = []
        for line in install.stderr:
            seen.append(line)
            if step in line:
                break
        else:
            pytest.fail(f"{step} was not told: {seen}")
        install.send_signal(signal.SIGINT)
        said = install.stderr.read()
        assert install.wait(120) != 0, said
    return said


def test_ctrl_c_leaves_nothing_at_whatever_step(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNDR_SSH_CONFIG", str(machines.config))
    before = tree(machines.far)
    with serving():
        assert sndr("host", "add", "gpu", "direct").code == 0
        assert sndr("host", "connect", "gpu").code == 0
        for step in STEPS[:-1]:
            said = cancelled_at(step)
            if step == STEPS[-2] and "had been started by then, and stays." in said:
                # The key was pressed too late: what is said is so, and can be taken back.
                assert pids_in(machines.far / "data" / "host")
                assert sndr("host", "uninstall", "gpu", "--yes").code == 0
                break
            nothing = "Nothing was changed there." if step in BEFORE else "Nothing of it is left there."
            assert f"was cancelled. {nothing}" in said, step
            assert tree(machines.far) == before, step
            assert wait_until(lambda: not pids_in(machines.far / "data" / "host")), step
        assert wait_until(lambda: not pids_in(machines.far / "data" / "host"))
        assert sndr("host", "disconnect", "gpu").code == 0
