"""The program in the application menu and on the PATH: put there, and taken out; what is not ours stays."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such entries")


def install(home: Path, *arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    return subprocess.run(
        [(folder or ROOT / "packaging/linux") / "install-desktop.sh", *arguments],
        env=environment | {"HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )


def test_it_is_put_there_twice_and_taken_out(tmp_path: Path) -> None:
    for _ in range(2):
        said = install(tmp_path)
    programs = tmp_path / ".local/bin"
    assert (programs / "sndr").readlink() == ROOT / ".venv/bin/sndr"
    assert (programs / "sndr-gui").readlink() == ROOT / ".venv/bin/sndr-gui"
    assert "is not in PATH yet" in said.stdout
    entry = tmp_path / ".local/share/applications/sndr.desktop"
    lines = entry.read_text().splitlines()
    assert f'Exec="{ROOT}/.venv/bin/sndr-gui" %u' in lines
    assert "MimeType=x-scheme-handler/sndr;" in lines
    manual = tmp_path / ".local/share/man/man1/sndr.1"
    assert ".SH COMMANDS" in manual.read_text(encoding="utf-8")
    install(tmp_path, "--remove")
    assert not [path for path in tmp_path.rglob("*sndr*") if not path.is_dir()]


def test_a_program_of_somebody_else_stays(tmp_path: Path) -> None:
    other = tmp_path / ".local/bin/sndr"
    other.parent.mkdir(parents=True)
    other.write_text("mine")
    assert "was left alone" in install(tmp_path).stderr
    install(tmp_path, "--remove")
    assert other.read_text() == "mine"


def test_an_unpacked_program_takes_the_place_of_another_and_is_taken_out(tmp_path: Path) -> None:
    home = tmp_path / "home"
    install(home)
    folder = tmp_path / "it is $HOME" / "sndr-control-center-9.9-linux-x86_64"
    (folder / "share").mkdir(parents=True)
    for name in ("sndr", "sndr-gui"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    shutil.copy(ROOT / "packaging/linux/install-desktop.sh", folder)
    shutil.copy(ROOT / "packaging/linux/sndr.desktop", folder / "share")
    shutil.copy(ROOT / "resources/icons/sndr.svg", folder / "share")
    shells = [sys.executable, str(ROOT / "packaging/linux/shell_files.py"), str(folder / "share")]
    subprocess.run(shells, check=True, timeout=60)
    assert "_SNDR_COMPLETE" in (folder / "share/zsh/vendor-completions/_sndr").read_text(encoding="utf-8")
    install(home, folder=folder)
    programs = home / ".local/bin"
    assert {(programs / name).readlink() for name in ("sndr", "sndr-gui")} == {
        folder / "sndr",
        folder / "sndr-gui",
    }
    entry = (home / ".local/share/applications/sndr.desktop").read_text()
    assert "/it is \\\\$HOME/sndr-control-center-9.9-linux-x86_64/sndr-gui" in entry
    # What a clone finds there now is another one's, and of this program.
    assert "was left alone" not in install(home).stderr
    install(home, folder=folder)
    install(home, "--remove", folder=folder)
    assert not [path for path in home.rglob("*sndr*") if not path.is_dir()]
