"""The units' own commands carried out as systemd would, which does not run here: engine and watchdog."""

import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.integration.host.conftest import free_port, wait_for
from tests.integration.host_process import environment, sndr

_SYSTEMCTL = """#!/bin/sh
echo "$@" >>"{notes}"
printf 'ActiveState=active\\nActiveEnterTimestampMonotonic=1\\n'
"""


def entries(unit: Path) -> list[tuple[str, str]]:
    """Every key of a unit with its value, lines that go on joined."""
    text = unit.read_text(encoding="utf-8").replace("\\\n", " ")
    return [
        (line.partition("=")[0], line.partition("=")[2])
        for line in text.splitlines()
        if "=" in line and not line.startswith("#")
    ]


def words(text: str, home: Path) -> list[str]:
    """A command line as systemd.service(5) reads it."""
    found = []
    for word in shlex.split(text):
        placed = re.sub(r"%([%hC])", lambda m: {"%": "%", "h": str(home), "C": f"{home}/.cache"}[m[1]], word)
        found.append(placed.replace("$$", "$"))
    return found


def put_in_place(folder: Path, home: Path) -> None:
    """What install.sh does, with a service manager that takes notes."""
    programs = home / "programs"
    programs.mkdir(parents=True)
    (programs / "systemctl").write_text(_SYSTEMCTL.format(notes=home / "notes"), encoding="utf-8")
    (programs / "systemctl").chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    subprocess.run([folder / "install.sh"], env={"HOME": str(home), "PATH": path}, check=True)


@pytest.fixture
def home_folder(tmp_path: Path) -> Path:
    """The home of whoever installs the service."""
    return tmp_path / "home of somebody"


def test_the_service_serves_and_the_watchdog_finds_it_well(tmp_path: Path, home_folder: Path) -> None:
    port = free_port()
    folder = tmp_path / "rendered"
    ended = sndr(
        *("launch", "demo-llamacpp", "--render", "systemd", "--output", str(folder), "--port", str(port))
    )
    assert ended.code == 0, ended.err
    put_in_place(folder, home_folder)
    units = home_folder / ".config" / "systemd" / "user"
    notes = (home_folder / "notes").read_text(encoding="utf-8")
    assert "--user enable --now sndr-demo-llamacpp.service" in notes
    assert "--user enable --now sndr-demo-llamacpp-watchdog.timer" in notes
    service = entries(units / "sndr-demo-llamacpp.service")
    command = words(dict(service)["ExecStart"], home_folder)
    given = dict(words(value, home_folder)[0].split("=", 1) for key, value in service if key == "Environment")
    log = (tmp_path / "log").open("wb")
    engine = subprocess.Popen(
        command,
        env=environment(**given),
        cwd=words(dict(service)["WorkingDirectory"].replace(" ", "\\ "), home_folder)[0],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    try:
        wait_for(lambda: well(port) or None, "the engine")
        checked = check(units / "sndr-demo-llamacpp-watchdog.service", home_folder)
        assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
        engine.send_signal(signal.SIGSTOP)
        # The engine is there and does not answer: what systemd alone never notices.
        stuck = check(units / "sndr-demo-llamacpp-watchdog.service", home_folder, answer="1")
        assert "(1 of 3)" in stuck.stdout
        engine.send_signal(signal.SIGCONT)
        engine.terminate()
        assert engine.wait(30) in {0, -signal.SIGTERM}
    finally:
        engine.kill()
        engine.wait(20)
        log.close()


def well(port: int) -> bool:
    """Whether an engine says that it is well."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def check(unit: Path, home: Path, answer: str | None = None) -> "subprocess.CompletedProcess[str]":
    """One check of the watchdog, by its unit's own words."""
    command = words(dict(entries(unit))["ExecStart"], home)
    assert command[0] == "/usr/bin/python3"
    command[0] = sys.executable
    if answer is not None:
        command[command.index("--answer-seconds") + 1] = answer
        command[command.index("--start-seconds") + 1] = "0"
    path = f"{home / 'programs'}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        command,
        env={"PATH": path, "XDG_RUNTIME_DIR": str(home)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_quadlet_is_installed_with_its_watchdog(tmp_path: Path, home_folder: Path) -> None:
    folder = tmp_path / "rendered"
    assert sndr("launch", "demo-vllm", "--render", "quadlet", "--output", str(folder)).code == 0
    put_in_place(folder, home_folder)
    quadlets = home_folder / ".config" / "containers" / "systemd"
    assert [path.name for path in quadlets.iterdir()] == ["sndr-demo-vllm.container"]
    units = home_folder / ".config" / "systemd" / "user"
    assert {path.suffix for path in units.iterdir()} == {".service", ".timer"}
    own = home_folder / ".local" / "share" / "sndr" / "deploy" / "sndr-demo-vllm"
    for key, value in entries(quadlets / "sndr-demo-vllm.container"):
        source = value.partition(":")[0].replace("%h", str(home_folder))
        if (key == "Volume" and source.startswith("/")) or key == "EnvironmentFile":
            assert Path(source).exists(), source
    assert (own / "secrets.env").stat().st_mode & 0o777 == 0o600
    (own / "secrets.env").write_text("VLLM_API_KEY=mine\n", encoding="utf-8")
    (home_folder / "programs" / "systemctl").unlink()
    (home_folder / "programs").rmdir()
    put_in_place(folder, home_folder)
    assert (own / "secrets.env").read_text(encoding="utf-8") == "VLLM_API_KEY=mine\n"
