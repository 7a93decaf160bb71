"""How `sndr` ends when its reader goes away, and when it is interrupted before it began: real processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine_host.cli import main
from engine_host.core.processes.own_programs import OwnProgram, command_of

SNDR = [sys.executable, "-m", "engine_host"]


@pytest.mark.parametrize("arguments", [("version",), ("--help",), ("version", "--json")])
def test_a_reader_that_is_gone_is_exit_code_141(home: Path, arguments: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = subprocess.run(
            [*SNDR, *arguments],
            stdout=writing,
            stderr=subprocess.PIPE,
            env={**os.environ, "SNDR_HOME": str(home)},
        )
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (141, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no disk that is always full")
@pytest.mark.parametrize("arguments", [("version",), ("--help",), ("version", "--json")])
def test_a_full_disk_is_said_in_a_sentence(home: Path, arguments: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [*SNDR, *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "SNDR_HOME": str(home)},
        )
    said = "Error: The output is not complete: No space left on device.\n"
    assert (ended.returncode, ended.stderr) == (7, said)


@pytest.mark.parametrize("program", [OwnProgram.SNDR, OwnProgram.BENCH_LAB])
def test_files_of_the_folder_that_a_person_stands_in_are_no_part_of_it(
    home: Path, tmp_path: Path, program: OwnProgram
) -> None:
    for name in ("engine_host", "httpx", "json"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('theirs')\n", encoding="utf-8")
    ended = subprocess.run(
        [*command_of(program), "--help"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_an_interrupt_while_the_commands_load_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Interrupting:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "engine_host.cli.root":
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(1)  # The handler runs between two steps of Python.

    monkeypatch.delitem(sys.modules, "engine_host.cli.root", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert main(["version"]) == 130
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("module", ["contextlib", "engine_host.cli", "engine_host.cli.root"])
def test_an_interrupt_while_the_program_loads_is_no_traceback(home: Path, module: str) -> None:
    code = f"""
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.modules.pop({module!r}, None)
class Interrupting:
    def find_spec(self, name, *_):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
sys.meta_path.insert(0, Interrupting())
from engine_host.__main__ import main
main()
"""
    ended = subprocess.run([sys.executable, "-c", code, "version"], capture_output=True, text=True)
    # A shell says 130 of both.
    assert ended.returncode in {130, -signal.SIGINT}
    assert (ended.stdout, ended.stderr) == ("", "")


def test_nothing_heavy_is_loaded_before_an_interrupt_is_caught() -> None:
    code = (
        "import sys, engine_host.cli; print(*(n for n in ('click', 'pydantic', 'httpx') if n in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "\n"
