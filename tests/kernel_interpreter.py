"""Triton's interpreter: the vLLM environment's torch, and what `packaging/kernels.sh` put beside it."""

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from engine_host.core.paths import Folders
from tests.vllm_environment import vllm_python

ROOT = Path(__file__).parents[1]
_PATCHES = ROOT / "engine_host" / "overlay" / "patches"
WITH_KERNELS = tuple(
    _PATCHES / name for name in ("turboquant-grouped-attention", "draft-head-8-bit", "cpu-kv-round-trip")
)
_LOCK = hashlib.sha256((ROOT / "packaging/locks" / "kernels.lock").read_bytes()).hexdigest()[:16]
# Looked up before any test gets folders of its own.
_FOLDER = Folders.resolve().cache / "kernel-interpreter" / _LOCK


def interpreter_environment() -> dict[str, str]:
    """Variables under which the vLLM environment's Python interprets kernels; fails the test without it."""
    vllm_python()  # Where tests go without vLLM, this one is skipped.
    if not _FOLDER.is_dir():
        pytest.fail("Triton's interpreter is not installed: packaging/kernels.sh")
    return {"TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join([*map(str, WITH_KERNELS), str(_FOLDER)])}


def run_interpreted(*arguments: str, timeout: float = 280.0) -> subprocess.CompletedProcess[str]:
    """Run pytest there, by itself: without this project's settings and fixtures."""
    return _run(interpreter_environment(), arguments, timeout)


def run_compiled(*arguments: str, timeout: float = 280.0) -> subprocess.CompletedProcess[str]:
    """The same where kernels are compiled and not interpreted; there is no assembler for them."""
    variables = interpreter_environment()
    del variables["TRITON_INTERPRET"]
    return _run(variables, arguments, timeout)


def _run(
    added: dict[str, str], arguments: tuple[str, ...], timeout: float
) -> subprocess.CompletedProcess[str]:
    variables = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PYTHON"))
    }
    return subprocess.run(
        [
            *(str(vllm_python()), "-m", "pytest", "-q", "-p", "no:cacheprovider", "--noconftest"),
            *("-c", os.devnull, "--rootdir", str(ROOT / "tests" / "kernels"), *arguments),
        ],
        env=variables | added | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
