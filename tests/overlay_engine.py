"""Runs a Python script inside a vLLM environment, with or without patches; for the tests of the overlay.

    from tests.overlay_engine import run_in_engine

    def test_symptom() -> None:
        without = run_in_engine(SCRIPT, [])
        patched = run_in_engine(SCRIPT, ["json-whitespace-limit"])
        assert without.answer["spaces"] == 2000
        assert patched.answer["spaces"] == 8
        assert patched.outcome("json-whitespace-limit") == "applied"

The last line on stdout that is JSON becomes `answer`. `patches` are ids of the built-in
catalogue; what they require is added. The environment is the one that `vllm_environment` finds.
"""

import json
import os
import tempfile
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine_host.overlay.bundle import write_bundle
from engine_host.overlay.loaded_patch import LoadedPatch
from engine_host.overlay.patch_file import read_patch_file
from tests.vllm_environment import share_model_infos, vllm_version
from tests.vllm_scripts import run_script

_NO_JSON = object()
PATCHES = Path(__file__).parents[1] / "engine_host" / "overlay" / "patches"


@dataclass(frozen=True)
class EngineRun:
    """What a script did; `ledger` holds every line of every process, in order of time."""

    returncode: int
    answer: Any
    stdout: str
    stderr: str
    ledger: tuple[Mapping[str, Any], ...]

    def outcome(self, patch: str) -> str | None:
        """What became of a patch as a whole; None when nothing was said of it."""
        said = [line for line in self.ledger if line["event"] == "settled" and line["patch"] == patch]
        return said[-1]["outcome"] if said else None

    def lines(self, event: str, patch: str | None = None) -> list[Mapping[str, Any]]:
        """The lines of one kind, of one patch."""
        return [
            line
            for line in self.ledger
            if line["event"] == event and (patch is None or line.get("patch") == patch)
        ]


def load_patches(names: Sequence[str], folders: Sequence[Path] = (PATCHES,)) -> list[LoadedPatch]:
    """Patches by id with what they require, requirements first."""
    chosen: dict[str, LoadedPatch] = {}

    def add(name: str) -> None:
        folder = next(folder / name for folder in folders if (folder / name).is_dir())
        patch = LoadedPatch(folder, read_patch_file(folder))
        for required in patch.file.requires:
            if required not in chosen:
                add(required)
        chosen[name] = patch

    for name in names:
        add(name)
    return list(chosen.values())


def run_in_engine(
    script: str | Path,
    patches: Sequence[str] = (),
    *,
    folders: Sequence[Path] = (PATCHES,),
    environment: Mapping[str, str] | None = None,
    arguments: Sequence[str] = (),
    timeout: float = 300.0,
    check: bool = True,
) -> EngineRun:
    """Run a script (its text or its path) in the vLLM environment; `check` fails the test on a bad exit."""
    with tempfile.TemporaryDirectory(prefix="sndr-") as scratch:
        root = Path(scratch)
        ledger = root / "ledger"
        ledger.mkdir()
        variables = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("VLLM_", "SNDR_", "PYTHON", "PYTEST"))
        }
        variables |= {
            "VLLM_NO_USAGE_STATS": "1",
            "DO_NOT_TRACK": "1",
            "HF_HUB_OFFLINE": "1",
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_CACHE_ROOT": str(root / "vllm"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        if patches:
            bundle = write_bundle(load_patches(patches, folders), vllm_version(), root)
            variables |= bundle.environment(ledger, in_own_venv=False)
        share_model_infos(root)
        variables |= environment or {}
        if isinstance(script, str):
            path = root / "script.py"
            path.write_text(textwrap.dedent(script), encoding="utf-8")
        else:
            path = script
        done = run_script(path, arguments, variables, root, timeout)
        lines = [
            json.loads(line)
            for file in ledger.glob("*.jsonl")
            for line in file.read_text(encoding="utf-8").splitlines()
        ]
    if check and done.returncode != 0:
        raise AssertionError(f"the script ended with {done.returncode}:\n{done.stderr[-4000:]}")
    found = (parsed for line in reversed(done.stdout.splitlines()) if (parsed := _json(line)) is not _NO_JSON)
    answer = next(found, None)
    return EngineRun(
        done.returncode, answer, done.stdout, done.stderr, tuple(sorted(lines, key=lambda line: line["at"]))
    )


def _json(line: str) -> Any:
    """What a line is as JSON, or a mark for a line of a log."""
    try:
        return json.loads(line)
    except ValueError:
        return _NO_JSON
