"""A package called vllm of a few lines, and real Python processes that import it with real bundles.

vLLM itself takes eight seconds to import; what is tested with this FAKE is the overlay, which only needs a
package of that name. tests/integration/host/vllm/test_overlay.py does it in the real one.
"""

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine_host.overlay.bundle import Bundle, write_bundle
from engine_host.overlay.loaded_patch import LoadedPatch
from engine_host.overlay.patch_file import read_patch_file

VERSION = "0.32.0+cpu"
MODULES = {
    "__init__": "",
    "scheduler": """
        LIMIT = 10


        def schedule(request, *, streams=1):
            \"\"\"Schedules.\"\"\"
            return request + LIMIT


        class Scheduler:
            def step(self, tokens):
                return tokens * 2

            @classmethod
            def named(cls, name):
                return f"{cls.__name__} {name}"

            @staticmethod
            def plus(a, b=1):
                return a + b

            @property
            def size(self):
                return 3
        """,
    "sampler": """
        import functools

        from vllm.scheduler import schedule

        TEMPERATURE = 1


        def logged(function):
            @functools.wraps(function)
            def inner(*args, **kwargs):
                return function(*args, **kwargs)

            return inner


        @logged
        def sample(logits, k=1):
            return logits + k
        """,
    "worker/__init__": "RANK = 0\n",
    "triton_utils/__init__": "",
    "triton_utils/dispatcher": """
        KERNELS = {}


        def register_kernels(kernels):
            KERNELS.update(kernels)
        """,
}
HEAD = """
id = "{name}"
title = "A test"
family = "test"
problem = "None."
risk = "low"
requires = {requires}
[applies_to]
vllm = ">=0.26,<0.33"
"""


@dataclass(frozen=True)
class Ran:
    """The output of a process, and every line of every ledger in order of time."""

    returncode: int
    stdout: str
    stderr: str
    ledger: tuple[Mapping[str, Any], ...]

    def settled(self, patch: str) -> tuple[str, str | None] | None:
        """Outcome and reason of a patch; None when nothing was said of it."""
        settled_lines = [
            line for line in self.ledger if line["event"] == "settled" and line["patch"] == patch
        ]
        return (settled_lines[-1]["outcome"], settled_lines[-1]["reason"]) if settled_lines else None

    def results(self, patch: str) -> list[tuple[str, str, str, str | None]]:
        """Operation, target, outcome and reason of each line about a patch."""
        return [
            (line["op"], line["target"], line["outcome"], line["reason"])
            for line in self.ledger
            if line["event"] == "result" and line["patch"] == patch
        ]


def text(module: str, find: str, replace: str, count: int = 1) -> str:
    """A `[[text]]` table."""
    texts = f"find = {json.dumps(find)}\nreplace = {json.dumps(replace)}"
    return f"[[text]]\nmodule = {module!r}\n{texts}\ncount = {count}\n"


def rebind(module: str, target: str, signature: str, replacement: str = "patch:replacement") -> str:
    """A `[[rebind]]` table."""
    return (
        f"[[rebind]]\nmodule = {module!r}\ntarget = {target!r}\n"
        f"replacement = {replacement!r}\nsignature = {signature!r}\n"
    )


def hook(point: str, function: str = "patch:replacement") -> str:
    """A `[[hook]]` table."""
    return f"[[hook]]\npoint = {point!r}\nfunction = {function!r}\n"


def write_patch(
    place: Path, name: str, operations: str, code: str = "", *, requires: Sequence[str] = ()
) -> LoadedPatch:
    """A patch folder with one module, `patch.py`."""
    folder = place / name
    folder.mkdir(parents=True, exist_ok=True)
    head = HEAD.format(name=name, requires=json.dumps(list(requires)))
    (folder / "patch.toml").write_text(head + operations, encoding="utf-8")
    (folder / "patch.py").write_text(textwrap.dedent(code), encoding="utf-8")
    return LoadedPatch(folder, read_patch_file(folder))


class FakeVllm:
    """The package, patches in order, and processes with their bundle."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.packages = root / "packages"
        self.ledger = root / "ledger"
        self.ledger.mkdir()
        self.patches: list[LoadedPatch] = []
        for name, source in MODULES.items():
            self.write(name, source)

    def write(self, name: str, source: str) -> Path:
        """Write one module of the package."""
        path = self.packages / "vllm" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source).lstrip("\n"), encoding="utf-8")
        return path

    def patch(self, name: str, operations: str, code: str = "", *, requires: Sequence[str] = ()) -> None:
        """Add a patch to the bundle of the next run."""
        self.patches.append(write_patch(self.root / "patches", name, operations, code, requires=requires))

    def bundle(self) -> Bundle:
        """The bundle of the patches so far."""
        return write_bundle(self.patches, VERSION, self.root / "cache")

    def environment(self, **variables: str) -> dict[str, str]:
        """Return the environment of a process: the bundle and the package by PYTHONPATH."""
        plain = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SNDR_OVERLAY", "PYTHON", "VLLM_"))
        }
        bundle = self.bundle()
        found = plain | bundle.environment(self.ledger, in_own_venv=False) | variables
        found["PYTHONPATH"] = os.pathsep.join([found["PYTHONPATH"], str(self.packages)])
        return found

    def run(
        self,
        script: str,
        *arguments: str,
        python: Sequence[str] = (sys.executable,),
        environment: Mapping[str, str] | None = None,
        fails: bool = False,
    ) -> Ran:
        """Run a script; a bad exit fails the test unless it is expected."""
        path = self.root / "script.py"
        path.write_text(textwrap.dedent(script), encoding="utf-8")
        done = subprocess.run(
            [*python, str(path), *arguments],
            env=dict(environment if environment is not None else self.environment()),
            cwd=self.root,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode != 0) is fails, done.stderr
        lines = [
            json.loads(line)
            for file in self.ledger.glob("*.jsonl")
            for line in file.read_text(encoding="utf-8").splitlines()
        ]
        lines.sort(key=lambda line: line["at"])
        return Ran(done.returncode, done.stdout, done.stderr, tuple(lines))
