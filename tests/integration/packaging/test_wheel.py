"""The wheel holds all of the program: installed without the window's packages, it runs the demo."""

import json
import subprocess
import zipfile
from pathlib import Path

from engine_host import __version__
from engine_host.client.sync import connected
from engine_host.core.paths import Folders
from engine_host.protocol.operations import table as ops
from tests.installed_program import ROOT, installed, run_installed, wheel

__all__ = ["installed", "wheel"]

# Where in the wheel each folder of the tree is.
DATA = {
    "sndr_gui/resources": "resources",
    "engine_host/presets": "presets",
    "engine_host": "engine_host",
    "sndr_gui": "sndr_gui",
}


def test_it_holds_every_file_that_the_program_reads(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    listed = subprocess.run(
        ["git", "ls-files", "-z", *DATA.values()], cwd=ROOT, capture_output=True, check=True
    )
    tracked = [name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]
    assert tracked
    for name in tracked:
        place = next(inside for inside, folder in DATA.items() if name.startswith(f"{folder}/"))
        assert place + name.removeprefix(DATA[place]) in names, name
    assert "sndr_gui/resources/models/sndr-demo/model.safetensors" in names
    assert not [name for name in names if "__pycache__" in name or name.startswith("tests/")]


def test_the_same_tree_gives_the_same_bytes(wheel: Path, tmp_path: Path) -> None:
    script = ROOT / "packaging" / "package.sh"
    subprocess.run([str(script), str(tmp_path)], capture_output=True, timeout=240, check=True)
    assert next(tmp_path.glob("*.whl")).read_bytes() == wheel.read_bytes()


def test_installed_without_the_window_it_runs_the_demo(installed: Path, tmp_path: Path) -> None:
    sndr = installed / "sndr"
    said = run_installed(sndr, "--version", cwd=tmp_path)
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.startswith(f"sndr {__version__} ")

    started = run_installed(sndr, "run", "--demo", "--detach", "--json", cwd=tmp_path)
    assert started.returncode == 0, (started.stdout, started.stderr)
    try:
        with connected() as client:
            # The program that runs is the installed one, not this tree's.
            host = client.call(ops.HOST)
            assert str(installed) in Path(f"/proc/{host.pid}/cmdline").read_bytes().decode()
        asked = run_installed(sndr, "chat", "Who are you?", cwd=tmp_path)
        assert asked.returncode == 0, asked.stderr
        assert "SNDR" in asked.stdout
        presets = run_installed(sndr, "presets", "list", "--json", cwd=tmp_path)
        assert json.loads(presets.stdout.splitlines()[0])
        patches = run_installed(sndr, "patches", "list", "--json", cwd=tmp_path)
        assert patches.returncode == 0, patches.stderr
    finally:
        ended = run_installed(sndr, "quit", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert not Folders.resolve().socket.exists()


def test_the_window_says_which_packages_it_lacks(installed: Path, tmp_path: Path) -> None:
    ended = run_installed(installed / "sndr-gui", cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (3, "")
    assert "sndr-control-center[window]" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_an_installed_copy_can_put_its_own_wheel_together(
    installed: Path, wheel: Path, tmp_path: Path
) -> None:
    program = (
        "import asyncio, pathlib, sys; from engine_host.remote.install.own_wheel import own_wheel; "
        "print(asyncio.run(own_wheel(pathlib.Path(sys.argv[1]))).path)"
    )
    made = run_installed(installed / "python", "-c", program, str(tmp_path / "out"), cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    with zipfile.ZipFile(wheel) as built, zipfile.ZipFile(made.stdout.strip()) as again:
        assert set(again.namelist()) == set(built.namelist())
        for name in built.namelist():
            assert name.endswith("/RECORD") or again.read(name) == built.read(name), name
