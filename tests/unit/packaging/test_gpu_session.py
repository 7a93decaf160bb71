"""The plan of a session on GPUs: what fits into a call runs, the rest waits, and no word of it is wrong."""

import argparse
import importlib
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from engine_host.overlay.patch_catalog import PatchCatalog


@pytest.fixture
def session(script: Callable[[str], ModuleType]) -> ModuleType:
    """The script."""
    return script("session")


class Process:
    """A FAKE process that ends after so many looks."""

    pid = 0

    def __init__(self, looks: int) -> None:
        self._looks = looks

    def poll(self) -> int | None:
        self._looks -= 1
        return 0 if self._looks <= 0 else None

    def wait(self, _seconds: float = 0) -> int:
        return 0


def test_steps_are_known_and_fit_into_a_call(session: ModuleType) -> None:
    names = [step.name for step in session.STEPS]
    assert len(set(names)) == len(names)
    assert all(step.seconds < session.CALL and step.gpus in {1, 2, 4} for step in session.STEPS)
    patches = set(PatchCatalog.load().patches)
    assert {patch for step in session.STEPS for patch in step.on} <= patches


def test_programs_read_the_words_of_their_steps(
    session: ModuleType, script: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(parser: argparse.ArgumentParser, *_words: Any, **_named: Any) -> argparse.Namespace:
        _, unknown = parser.parse_known_args()
        raise SystemExit(f"unknown: {unknown}" if unknown else 0)

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", read)
    for step in session.STEPS:
        asked = session.command_of(step, Path("/venv"), Path("/out"), tuple(range(step.gpus)))
        if step.words.startswith("conversations"):
            program = importlib.import_module("engine_host.bench.gpu.prefix_conversations")
            asked = ["ask", "MODEL", "OUT", *shlex.split(step.words)[3:]]
        elif step.words.startswith("llamacpp"):
            program, asked = script("llamacpp"), ["--folder", *asked[1:]]
        elif step.words.split()[0] in session.ALONE:
            program, asked = script(asked[2]), ["--installation", asked[1], *asked[3:]]
        elif step.of_product:
            program, asked = script("check"), ["--installation", *asked[1:]]
        else:
            program, asked = importlib.import_module(asked[2]), asked[3:]
        monkeypatch.setattr(sys, "argv", [step.name, *asked])
        with pytest.raises(SystemExit) as ended:
            program.main()
        assert ended.value.code == 0, step.name


def test_a_call_runs_what_fits_side_by_side_and_the_next_one_goes_on(
    session: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    begun: list[tuple[str, str]] = []

    def popen(command: list[str], **more: Any) -> Process:
        name = Path(command[-1]).stem
        begun.append((name, more["env"].get("CUDA_VISIBLE_DEVICES", "")))
        return Process(2 if name == "slow" else 1)

    monkeypatch.setattr(session.subprocess, "Popen", popen)
    monkeypatch.setattr(session.os, "killpg", lambda *_: None)
    monkeypatch.setattr(session.time, "sleep", lambda _: None)
    module = "engine_host.bench.gpu.vllm_speed x"
    steps = [
        session.Step("slow", module, 300),
        session.Step("both", module, 300, gpus=2),
        session.Step("short", module, 300),
        session.Step("long", module, 900),
    ]
    session.run(steps, Path("/venv"), Path("/host"), tmp_path, 2, 560)
    assert begun == [("slow", "0"), ("short", "1"), ("both", "0,1")]
    told = list(session.table(steps, tmp_path))
    assert "exit code 0" in told[2]
    assert "not run" in told[5], "it would not fit into a call"
    assert (tmp_path / "both.done").is_file()
