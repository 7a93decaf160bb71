"""One module knows how this program starts its own parts, also where it is frozen; nobody else does."""

import ast
import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine_host.core.processes.own_programs import ALONE, OwnProgram, command_of, run_asked

ROOT = Path(__file__).resolve().parents[4]
# What else asks for the Python that runs: it starts pip, venv or vLLM's own scripts, none of which is ours.
ASK_FOR_PYTHON = {
    "engine_host/core/processes/own_programs.py",
    "engine_host/remote/install/own_wheel.py",
    "engine_host/engines/vllm/install.py",
    "engine_host/engines/llamacpp/build/interpreter.py",
    "engine_host/bench/gpu/vllm_answers.py",
    "engine_host/bench/gpu/vllm_starts.py",
}


def file_of(program: OwnProgram) -> Path:
    path = ROOT / program.replace(".", "/")
    return path / "__main__.py" if path.is_dir() else path.with_suffix(".py")


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


@pytest.mark.parametrize("program", OwnProgram, ids=lambda program: program.name)
def test_each_program_is_a_module_that_can_be_run(program: OwnProgram) -> None:
    path = file_of(program)
    assert 'if __name__ == "__main__":' in path.read_text(encoding="utf-8")
    *words, last = command_of(program)
    assert words[0] == sys.executable
    if program in ALONE:
        assert Path(last) == path
        assert words[1:] == ["-I", "-S"]
        assert {name.split(".")[0] for name in imported(path)} <= set(sys.stdlib_module_names)
    else:
        assert (words[1:], last) == (["-P", "-m"], program)


def test_nobody_else_starts_this_program_by_python() -> None:
    found = set()
    for package in ("engine_host", "sndr_gui"):
        for path in (ROOT / package).rglob("*.py"):
            if "overlay/patches" in path.as_posix():
                continue
            text = path.read_text(encoding="utf-8")
            for node in ast.walk(ast.parse(text)) if "executable" in text else ():
                if isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.executable":
                    found.add(path.relative_to(ROOT).as_posix())
    assert found == ASK_FOR_PYTHON


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "executable", "/opt/it is here/sndr")
    monkeypatch.setattr(sys, "argv", ["/opt/it is here/sndr"])


@pytest.mark.usefixtures("frozen")
def test_a_frozen_program_starts_itself() -> None:
    words = {command_of(program) for program in OwnProgram}
    assert len(words) == len(OwnProgram)
    assert {program for program, _ in words} == {"/opt/it is here/sndr"}


@pytest.mark.usefixtures("frozen")
def test_from_an_appimage_what_may_stay_is_started_by_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    stays = (OwnProgram.SNDR, OwnProgram.WINDOW)
    monkeypatch.setenv("APPIMAGE", "/opt/sndr.AppImage")
    monkeypatch.setenv("APPDIR", "/opt/it is here")
    assert {command_of(program)[0] for program in stays} == {"/opt/sndr.AppImage"}
    rest = {command_of(program)[0] for program in OwnProgram if program not in stays}
    assert rest == {"/opt/it is here/sndr"}
    # The terminal of another program's AppImage hands that one's variables on.
    monkeypatch.setenv("APPDIR", "/tmp/.mount_editor")
    assert {command_of(program)[0] for program in OwnProgram} == {"/opt/it is here/sndr"}


@pytest.mark.usefixtures("frozen")
def test_the_first_word_of_a_frozen_program_says_which_of_them_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = b"import sys; print(__name__, sys.argv[1:])"
    fed = io.TextIOWrapper(io.BytesIO(f"{len(text)}\n".encode() + text))
    monkeypatch.setattr(sys, "stdin", fed)
    assert run_asked([*command_of(OwnProgram.FED_SCRIPT)[1:], "one", "--two=3"])
    assert capsys.readouterr().out == "__main__ ['one', '--two=3']\n"


@pytest.mark.usefixtures("frozen")
def test_only_our_own_programs_are_run_by_that_word() -> None:
    first = command_of(OwnProgram.REAPER)[1]
    for name in ("os", "engine_host.cli", "", "engine_host.engines.process", "../../tmp/evil", "site"):
        with pytest.raises(ValueError, match="is not a valid OwnProgram"):
            run_asked([first.replace(OwnProgram.REAPER, name)])


@pytest.mark.parametrize("words", [[], ["serve"], ["chat", "--own-program=engine_host"], ["--version"]])
def test_other_words_are_left_to_the_command_line(words: list[str]) -> None:
    assert not run_asked(words)
