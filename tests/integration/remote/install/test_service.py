"""The service of a user: FAKE systemctl and loginctl, and FAKE releases that only answer and sleep."""

import asyncio
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ConfigDict

from engine_host.core.errors import HostError
from engine_host.core.store import Store
from engine_host.engines.process import birth
from engine_host.protocol.errors import Reason
from engine_host.remote.install.answers import MachineAnswer, Probed, Removed, Switched
from engine_host.remote.install.installing import abandoned
from engine_host.remote.install.machine import do
from engine_host.remote.install.unit import unit_of
from engine_host.remote.run import Feed, RemoteOutcome, RemoteScript, run_over
from tests.integration.remote.install.machines import SecondHome, pids_in, tree
from tests.integration.remote.machines import fill, small_disk
from tests.unit.asynchronous import until
from tests.waiting import wait_until

SYSTEMCTL = """#!{python}
import os, pathlib, signal, subprocess, sys
home = pathlib.Path(os.environ["HOME"])
base = home.parent
words = sys.argv[2:]
with open(base / "calls", "a") as calls:
    print(*words, file=calls)
unit = home / ".config/systemd/user/sndr-host.service"
wants = unit.parent / "default.target.wants"
pid = base / "unit.pid"
if words[0] == "enable":
    wants.mkdir(exist_ok=True)
    (wants / unit.name).unlink(missing_ok=True)
    (wants / unit.name).symlink_to(unit)
elif words[0] == "disable":
    (wants / unit.name).unlink(missing_ok=True)
elif words[0] == "restart":
    line = next(x for x in unit.read_text().splitlines() if x.startswith("ExecStart="))
    program = line.split("=", 1)[1].split()[0]
    started = subprocess.Popen([program, "-m", "engine_host", "serve"], start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    pid.write_text(str(started.pid))
elif words[0] == "stop" and pid.exists():
    try:
        os.kill(int(pid.read_text()), signal.SIGTERM)
    except ProcessLookupError:
        pass
"""
LOGINCTL = """#!{python}
import os, pathlib, sys
base = pathlib.Path(os.environ["HOME"]).parent
with open(base / "calls", "a") as calls:
    print("loginctl", *sys.argv[1:2], file=calls)
flag, allowed = base / "lingers", not (base / "refuses").exists()
if sys.argv[1] == "show-user":
    print("yes" if flag.exists() else "no")
elif sys.argv[1] == "enable-linger":
    flag.touch() if allowed else sys.exit(1)
else:
    flag.unlink(missing_ok=True)
"""
# The Python of a release, as far as a switch asks it.
PROGRAM = """#!{python}
import fcntl, json, os, pathlib, platform, signal, sys, time
here = pathlib.Path(sys.argv[0])
data = pathlib.Path(os.environ["HOME"]) / ".local/share/sndr"
words = [word for word in sys.argv[1:] if word not in ("-P", "-m", "engine_host", "bin/sndr", "-x")]
if words[0] == "version":
    print(json.dumps({{"program": "0.2.0", "protocol": "1.0"}}))
elif words[0] == "serve":
    if (here.resolve().parent.parent / "broken").exists():
        sys.exit(1)
    claim = data / "host.claim"
    lock = os.open(claim, os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    claim.write_text(json.dumps({{"pid": os.getpid(), "machine": platform.node(), "run": "/x"}}))
    def end(*_):
        claim.unlink()
        os._exit(0)
    signal.signal(signal.SIGTERM, end)
    time.sleep(600)
elif words[0] == "status":
    try:
        pid = json.loads((data / "host.claim").read_text())["pid"]
    except OSError:
        sys.exit(3)
    engines = [{{"name": name, "state": "ready", "keep": name == "b"}} for name in "ab"]
    if (data / "stopped").exists():
        engines = []
    print(json.dumps({{"host": {{"pid": pid, "program": "sndr 0.2.0"}}, "engines": engines}}))
elif words == ["stop", "--all", "--now"]:
    base = data.parent.parent.parent.parent
    if (base / "engines-stay").exists():
        sys.exit(0)
    (data / "stopped").touch()
    (base / "stopped").touch()
"""


@pytest.fixture
def there() -> Iterator[SecondHome]:
    """A home with FAKE programs of systemd on its PATH."""
    base = Path(tempfile.mkdtemp(prefix="sndr-r-"))
    (base / "home").mkdir()
    (base / "bin").mkdir()
    for name, text in (("systemctl", SYSTEMCTL), ("loginctl", LOGINCTL)):
        program = base / "bin" / name
        program.write_text(text.format(python=sys.executable), encoding="utf-8")
        program.chmod(0o755)
    yield SecondHome(base / "home", variables={"PATH": f"{base / 'bin'}:/usr/bin:/bin"})
    left = pids_in(base)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    shutil.rmtree(base, ignore_errors=True)
    assert left == []


class Anything(MachineAnswer):
    """The answer of a step as it came."""

    model_config = ConfigDict(extra="allow")


def step(there: SecondHome, name: str, **asked: Any) -> dict[str, Any]:
    return asyncio.run(do(there.machine, name, Anything, **asked)).model_dump()


def begun(there: SecondHome, *releases: str) -> str:
    """Begin an install and put FAKE releases there; the unit."""
    step(there, "begin", files=[], needs=0)
    root = there.home / ".local/share/sndr/host"
    for release in releases:
        program = root / release / "bin" / "python"
        program.parent.mkdir(parents=True)
        program.write_text(PROGRAM.format(python=sys.executable), encoding="utf-8")
        program.chmod(0o755)
        (root / release / "complete.json").write_text("{}", encoding="utf-8")
    return unit_of(str(root), {})


def calls(there: SecondHome) -> list[str]:
    return (there.home.parent / "calls").read_text(encoding="utf-8").splitlines()


def test_a_service_that_stays_is_made_and_taken_away(there: SecondHome) -> None:
    before = tree(there.home)
    unit = begun(there, "one")
    done = step(there, "switch", release="one", unit=unit)
    assert done["service"] == "systemd"
    assert (there.home.parent / "lingers").exists()
    said = step(there, "probe", interpreters=["python3"], small_package=None)
    assert (said["systemd"], said["lingers"], said["current"]) == (True, True, "one")
    assert said["engines"] == [{"name": "a", "keep": False}, {"name": "b", "keep": True}]
    (there.home.parent / "engines-stay").touch()
    with pytest.raises(HostError) as failed:
        step(there, "uninstall")
    assert failed.value.reason is Reason.CONFLICT, "nothing is taken from under an engine"
    assert said["running"]["pid"] in pids_in(there.home.parent)
    (there.home.parent / "engines-stay").unlink()
    step(there, "uninstall")
    assert (there.home.parent / "stopped").exists(), "kept engines end before their data goes"
    assert tree(there.home) == before
    assert not (there.home.parent / "lingers").exists(), "what the install permitted is taken back"
    assert "disable sndr-host.service" in calls(there)


def test_engines_that_outlived_their_host_are_named_and_ended_by_it(there: SecondHome) -> None:
    before = tree(there.home)
    unit = begun(there, "one")
    done = step(there, "switch", release="one", unit=unit)
    step(there, "probe", interpreters=["python3"], small_package=None)
    os.kill(done["version"]["pid"], signal.SIGTERM)
    sleeping = subprocess.Popen(["sleep", "600"])
    try:
        assert wait_until(lambda: not os.path.exists(f"/proc/{done['version']['pid']}"))
        store = Store(there.home / ".local/share/sndr/sndr.sqlite")
        for name, born in (("kept", birth.born(sleeping.pid)), ("of an earlier boot", "x/1")):
            body = {"engine": {"name": name}, "pid": sleeping.pid, "born": born}
            store.put("engine", name, 1.0, json.dumps(body))
        store.close()
        said = step(there, "probe", interpreters=["python3"], small_package=None)
        assert (said["running"], said["engines"]) == (None, [{"name": "kept", "keep": True}])
        step(there, "uninstall")
    finally:
        sleeping.kill()
        sleeping.wait()
    assert (there.home.parent / "stopped").exists(), "the host came back to end them"
    assert tree(there.home) == before


def test_where_services_end_with_the_session_it_is_a_plain_process(there: SecondHome) -> None:
    (there.home.parent / "refuses").touch()
    before = tree(there.home)
    done = step(there, "switch", release="one", unit=begun(there, "one"))
    assert done["service"] == "plain"
    assert "lingering is not permitted" in done["why_plain"]
    assert "restart sndr-host.service" not in calls(there)
    step(there, "uninstall")
    assert tree(there.home) == before


def test_a_release_that_does_not_start_is_replaced_by_the_one_before(there: SecondHome) -> None:
    (there.home.parent / "refuses").touch()
    root = there.home / ".local/share/sndr/host"
    unit = begun(there, "one")
    step(there, "switch", release="one", unit=unit)
    begun(there, "two")
    (root / "two" / "broken").touch()
    with pytest.raises(HostError) as failed:
        step(there, "switch", release="two", unit=unit)
    assert failed.value.reason is Reason.VERIFICATION_FAILED
    assert failed.value.problem.evidence["back_on"] == "one"
    assert (root / "current").readlink() == Path("one")
    step(there, "uninstall")


def break_record(there: SecondHome) -> None:
    (there.home / ".local/share/sndr/host/install.json.new").mkdir()


def break_unit(there: SecondHome) -> None:
    (there.home / ".config/systemd/user/sndr-host.service.new").mkdir(parents=True)


def break_program(there: SecondHome) -> None:
    (there.home / ".local/share/sndr/host/two/bin/python").chmod(0o600)


def break_answer(there: SecondHome) -> None:
    program = there.home / ".local/share/sndr/host/two/bin/python"
    program.write_text(f"#!{sys.executable}\nprint('no answer', [])\n", encoding="utf-8")


@pytest.mark.parametrize("service", ["systemd", "plain"])
@pytest.mark.parametrize("break_it", [break_record, break_unit, break_program, break_answer])
def test_whatever_stops_a_switch_the_release_before_runs_again(
    there: SecondHome, service: str, break_it: Callable[[SecondHome], None]
) -> None:
    if service == "plain":
        (there.home.parent / "refuses").touch()
    root = there.home / ".local/share/sndr/host"
    unit = begun(there, "one")
    step(there, "switch", release="one", unit=unit)
    begun(there, "two")
    break_it(there)
    if service == "plain" and break_it is break_unit:
        assert step(there, "switch", release="two", unit=unit)["before"] == "one"
    else:
        with pytest.raises(HostError) as failed:
            step(there, "switch", release="two", unit=unit)
        assert failed.value.problem.evidence["back_on"] == "one"
        assert (root / "current").readlink() == Path("one")
        assert not (root / "previous").exists()
    assert step(there, "probe", interpreters=["python3"], small_package=None)["running"]["ours"]
    if (folder := root / "install.json.new").exists():
        folder.rmdir()
    step(there, "uninstall")


def test_a_first_install_that_cannot_be_started_leads_nowhere(there: SecondHome) -> None:
    unit = begun(there, "one")
    break_record(there)
    with pytest.raises(HostError) as failed:
        step(there, "switch", release="one", unit=unit)
    assert failed.value.reason is Reason.NOT_WRITABLE
    assert not (there.home / ".local/share/sndr/host/current").is_symlink()


def test_a_switch_on_a_full_disk_is_refused_while_the_old_release_runs_on(there: SecondHome) -> None:
    (there.home.parent / "refuses").touch()
    with small_disk(there.home / ".local" / "share", 8):
        unit = begun(there, "one")
        pid = step(there, "switch", release="one", unit=unit)["version"]["pid"]
        begun(there, "two")
        fill(there.home / ".local" / "share", leaving=1 << 20)
        with pytest.raises(HostError) as failed:
            step(there, "switch", release="two", unit=unit)
        assert failed.value.reason is Reason.DISK_FULL
        said = step(there, "probe", interpreters=["python3"], small_package=None)
        assert (said["current"], said["running"]["pid"]) == ("one", pid)
        step(there, "uninstall")


def test_what_a_host_keeps_survives_the_loss_of_its_release_and_every_failed_repair(
    there: SecondHome,
) -> None:
    before = tree(there.home)
    (there.home.parent / "refuses").touch()
    data = there.home / ".local/share/sndr"
    unit = begun(there, "one")
    step(there, "switch", release="one", unit=unit)
    (data / "models").mkdir()
    (data / "models" / "mine.gguf").write_bytes(b"model")
    shutil.rmtree(data / "host" / "one")
    said = step(there, "probe", interpreters=["python3"], small_package=None)
    assert said["damaged"] == {"one": "its folder is missing"}
    assert (said["releases"], said["installed"], said["running"]["ours"]) == ([], True, True)

    begun(there, "two")
    (data / "host" / "two" / "broken").touch()
    with pytest.raises(HostError):
        step(there, "switch", release="two", unit=unit)
    assert (data / "host" / "current").readlink() == Path("one")
    step(there, "abandon", drop_uploads=True)
    assert (data / "models" / "mine.gguf").read_bytes() == b"model"
    (data / "host" / "two" / "broken").unlink()
    step(there, "switch", release="two", unit=unit)
    (data / "host" / "two" / "bin" / "python").unlink()
    sleeping = subprocess.Popen(["sleep", "600"])
    store = Store(data / "sndr.sqlite")
    body = {"engine": {"name": "kept"}, "pid": sleeping.pid, "born": birth.born(sleeping.pid)}
    store.put("engine", "kept", 1.0, json.dumps(body))
    store.close()
    try:
        said = step(there, "probe", interpreters=["python3"], small_package=None)
        assert (said["silent"], said["engines"]) == (True, [{"name": "kept", "keep": True}])
        with pytest.raises(HostError) as failed:
            step(there, "uninstall")
    finally:
        sleeping.kill()
        sleeping.wait()
    assert "kept" in failed.value.problem.cause
    assert "`sndr host update gpu`" in str(failed.value.problem.fix)
    step(there, "uninstall")
    assert tree(there.home) == before


def test_a_step_that_meets_anything_else_says_so(there: SecondHome) -> None:
    with pytest.raises(HostError) as failed:
        step(there, "environment")
    assert failed.value.reason is Reason.INSTALL_FAILED
    assert "KeyError" in str(failed.value.problem.cause)


@pytest.mark.parametrize("words", [("-m", "engine_host", "serve"), ("bin/sndr", "-x", "serve")])
def test_a_host_of_another_installation_is_left_alone(there: SecondHome, words: tuple[str, ...]) -> None:
    unit = begun(there, "one")
    other = there.home / "own"
    (other / "bin").mkdir(parents=True)
    shutil.copy(there.home / ".local/share/sndr/host/one/bin/python", other / "bin" / "python")

    async def together() -> None:
        process = await asyncio.create_subprocess_exec(
            str(other / "bin" / "python"), *words, env=there.environment
        )
        claim = there.home / ".local/share/sndr/host.claim"
        await until(lambda: claim.exists() and claim.read_text(encoding="utf-8"))
        said = await do(there.machine, "probe", Probed, interpreters=["python3"], small_package=None)
        assert said.running is not None
        assert not said.running.ours
        with pytest.raises(HostError) as failed:
            await do(there.machine, "switch", Switched, release="one", unit=unit)
        assert failed.value.reason is Reason.CONFLICT
        with pytest.raises(HostError) as failed:
            await do(there.machine, "uninstall", Removed)
        assert failed.value.reason is Reason.CONFLICT
        # A first install that failed takes its own folders away, but none of those that somebody uses.
        await do(there.machine, "abandon", Removed, drop_uploads=True)
        assert claim.exists()
        assert not (there.home / ".local/share/sndr/host").exists()
        assert process.returncode is None
        process.terminate()
        await process.wait()

    asyncio.run(together())


@pytest.mark.parametrize(
    "note", ["", "{", '{"pid": "7"}', '{"pid": 7, "machine": ["x"]}', '{"machine": "far"}']
)
def test_a_holder_that_tells_nothing_of_itself_is_not_ours(there: SecondHome, note: str) -> None:
    begun(there)
    claim = there.home / ".local/share/sndr/host.claim"
    claim.write_text(note, encoding="utf-8")
    assert step(there, "probe", interpreters=["python3"], small_package=None)["running"] is None
    with claim.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        said = step(there, "probe", interpreters=["python3"], small_package=None)
        assert not said["running"]["ours"]
        with pytest.raises(HostError) as failed:
            step(there, "uninstall")
        assert failed.value.reason is Reason.CONFLICT
    step(there, "uninstall")


SLOW = """#!/bin/sh
PATH=/usr/bin:/bin
mkdir -p "$HOME/.local/share/sndr/host/one.new"
sh -c 'sleep 600; :' "$HOME" &
wait
"""


class Leaves(SecondHome):
    """FAKE: as sshd does, nothing there is signalled when the connection goes: its standard input ends."""

    async def _run(self, script: RemoteScript, feed: Feed, seconds: float | None, most: int) -> RemoteOutcome:
        away = 'setsid -w "$@"; exit $?'
        argv = ("/bin/sh", "-c", away, "sh", "/bin/sh", "-c", script.interpreter.value)
        return await run_over(argv, self.environment, feed, seconds, most)


def test_a_cancelled_step_ends_what_it_runs_and_clears_it_away(there: SecondHome) -> None:
    step(there, "begin", files=[], needs=0)
    python = there.home / "python"
    python.write_text(SLOW, encoding="utf-8")
    python.chmod(0o755)
    target = there.home / ".local/share/sndr/host/one.new"
    machine = Leaves(there.home, variables=there.variables).machine
    asked = {"release": "one", "python": str(python), "wheel": "w", "bundle": "b", "lock": ""}

    async def cancelled() -> None:
        work = asyncio.create_task(do(machine, "environment", Anything, **asked))
        await until(target.exists)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        await until(lambda: not pids_in(there.home) and not target.exists())

    asyncio.run(cancelled())
    step(there, "abandon", drop_uploads=True)


def test_a_switch_goes_on_when_nobody_waits_any_more(there: SecondHome) -> None:
    unit = begun(there, "one")
    machine = Leaves(there.home, variables=there.variables).machine
    current = there.home / ".local/share/sndr/host/current"

    async def cancelled() -> None:
        work = asyncio.create_task(do(machine, "switch", Switched, release="one", unit=unit))
        await until(current.is_symlink)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(cancelled())
    # It waits until that one has ended.
    assert asyncio.run(abandoned(machine, "one")) == "one had been started by then, and stays."
    assert asyncio.run(abandoned(machine, "two")) == "one stays there."
    said = step(there, "probe", interpreters=["python3"], small_package=None)
    assert (said["current"], said["running"]["ours"]) == ("one", True)
    step(there, "uninstall")


HOSTILE = ["$(touch pwned)", "`touch pwned`", "'; touch pwned; '", "a\nb", "../../x", "\x1b[2J"]


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_asked_is_data(there: SecondHome, text: str) -> None:
    with pytest.raises(HostError):
        step(there, "switch", release=text, unit=text)
    said = step(there, "probe", interpreters=[text, "python3"], small_package=None)
    assert said["pythons"]
    assert not list(there.home.parent.rglob("pwned"))
    assert json.dumps(said)


def test_systemd_reads_the_unit_also_of_an_odd_folder(tmp_path: Path) -> None:
    root = tmp_path / "a b%n $HOME"
    (root / "current" / "bin").mkdir(parents=True)
    (root / "current" / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / "run").mkdir(mode=0o700)
    (tmp_path / "sndr-host.service").write_text(unit_of(str(root), {"SNDR_HOME": "/x y%h"}), encoding="utf-8")
    said = subprocess.run(
        ["systemd-analyze", "--user", "verify", "./sndr-host.service"],
        cwd=tmp_path,
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path / "run"), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (said.returncode, said.stderr.strip()) == (0, "")
