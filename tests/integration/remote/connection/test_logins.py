"""Logins of other people's machines: shells that print or are no POSIX shell, none at all, no Python.

The shell and the home of root are other ones for one sshd alone, in a mount namespace of its own.
"""

import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason
from engine_host.protocol.remote.hosts import RemoteMode
from engine_host.remote.install.answers import Probed
from engine_host.remote.install.machine import Machine, do
from engine_host.remote.upload import upload
from tests.integration.remote.conftest import Fleet
from tests.integration.remote.machines import Machines
from tests.unit.asynchronous import run, until

Open = Callable[..., AbstractAsyncContextManager[Fleet]]
ODD = "a home of 'one' \"two\" $HOME `id` %h (x) \\"
NOISE = {
    "bash": (".bashrc", "echo hello; echo more >&2; printf 'half a line'\n"),
    "zsh": (".zshenv", "echo hello; echo more >&2; printf 'half a line'\n"),
    "fish": (".config/fish/config.fish", "echo hello; echo more >&2; printf 'half a line'\n"),
    "tcsh": (".cshrc", "echo hello; printf 'half a line'\n"),
    "dash": (".profile", ""),
}


def log_in(
    machines: Machines, shell: str, *, home: Path | None = None, hidden: tuple[Path, ...] = ()
) -> None:
    """Give root there another shell and home; what is `hidden` cannot be started there."""
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespaces here")
    passwd, nothing = machines.folder / "passwd", machines.folder / "nothing"
    lines = Path("/etc/passwd").read_text(encoding="utf-8").splitlines()
    others = [line for line in lines if not line.startswith("root:")]
    passwd.write_text("\n".join([f"root:x:0:0:root:{home or machines.far}:{shell}", *others, ""]))
    nothing.touch(mode=0o600)
    machines.target.over = {Path("/etc/passwd"): passwd, **dict.fromkeys(hidden, nothing)}
    machines.target.stop()
    machines.target.start()


def pythons() -> tuple[Path, ...]:
    """The programs that `python3` on the PATH of a login there leads to."""
    found = (Path(place) / "python3" for place in ("/usr/local/bin", "/usr/bin", "/bin"))
    return tuple({one.resolve() for one in found if one.exists()})


@pytest.mark.parametrize("shell", NOISE)
def test_whatever_the_login_shell_is_and_prints(machines: Machines, fleet: Open, shell: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"there is no {shell} here")
    home = machines.folder / ODD
    file, words = NOISE[shell]
    (home / file).parent.mkdir(parents=True)
    (home / file).write_text(words, encoding="utf-8")
    (machines.folder / "banner").write_text("Host key verification failed.\nPermission denied (publickey).\n")
    # No PATH to a Python: that of a login without a terminal may be short.
    machines.target.variables = ("PATH=/opt/none",)
    machines.target.extra = (f"Banner {machines.folder / 'banner'}",)
    machines.target.own_home = False
    log_in(machines, program, home=home)
    own = home / f".pyenv/versions/{platform.python_version()}/bin/python3"
    own.parent.mkdir(parents=True)
    own.symlink_to(Path(sys.executable).resolve())
    source = machines.folder / "a file"
    source.write_bytes(b"content" * 9999)

    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "direct", RemoteMode.ENGINE_HOST)
            found.hosts.connect("gpu")
            await found.reach("gpu")
            await until(lambda: found.hosts.shown("gpu").engine_host_problem is not None)
            problem = found.hosts.shown("gpu").engine_host_problem
            assert problem is not None
            assert "No engine host is installed on gpu" in problem.message
            facts = await found.hosts.probe("gpu")
            assert facts.home == str(home)
            there = await upload(found.hosts, "gpu", source, "models/it's $HOME/a `file`")
            assert there.path == str(home / "models/it's $HOME/a `file`")
            said = await do(
                Machine("gpu", found.hosts), "probe", Probed, interpreters=["python3"], small_package=None
            )
            assert said.root == str(home / ".local/share/sndr/host")
            assert str(own) in [one.path for one in said.pythons]

    run(work())
    assert (home / "models/it's $HOME/a `file`").read_bytes() == source.read_bytes()


def test_a_login_that_runs_nothing_is_told_with_what_it_says(machines: Machines, fleet: Open) -> None:
    nologin = next(
        (one for one in ("/usr/sbin/nologin", "/sbin/nologin") if Path(one).exists()), "/bin/false"
    )
    log_in(machines, nologin)

    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "direct", RemoteMode.ENGINE_HOST)
            found.hosts.connect("gpu")
            await found.reach("gpu")
            await until(lambda: found.hosts.shown("gpu").engine_host_problem is not None)
            problem = found.hosts.shown("gpu").engine_host_problem
            assert problem is not None
            assert problem.message == "The login on gpu ends without running anything."
            assert "not available" in problem.cause or nologin == "/bin/false"
            with pytest.raises(HostError, match="ends without running anything"):
                await found.hosts.probe("gpu")

    run(work())


def test_a_machine_without_python_is_told_from_one_that_is_not_reached(
    machines: Machines, fleet: Open
) -> None:
    machines.target.variables = ("PATH=/usr/bin:/bin",)
    log_in(machines, "/bin/sh", hidden=pythons())

    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "direct", RemoteMode.ENGINE_HOST)
            found.hosts.connect("gpu")
            await found.reach("gpu")
            await until(lambda: found.hosts.shown("gpu").engine_host_problem is not None)
            problem = found.hosts.shown("gpu").engine_host_problem
            assert problem is not None
            assert (problem.reason, problem.message) == (
                Reason.SSH_FAILED,
                "There is no Python on gpu that can be started.",
            )
            assert "python3" in problem.cause
            assert problem.fix is not None
            assert problem.fix.command is not None
            facts = await found.hosts.probe("gpu")
            assert facts.memory_total, "facts need no Python"

    run(work())
