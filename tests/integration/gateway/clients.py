"""The environment of clients that `packaging/clients.sh` makes, and runs in it."""

import asyncio
import hashlib
import os
from pathlib import Path

import pytest

from engine_host.core.paths import Folders

ROOT = Path(__file__).parents[3]
_LOCK = hashlib.sha256((ROOT / "packaging/locks" / "clients.lock").read_bytes()).hexdigest()[:16]
# Looked up before any test gets folders of its own.
_FOLDER = Folders.resolve().cache / "test-clients" / _LOCK / "bin"


async def run_client(program: str, *words: str, folder: Path, seconds: float = 240.0) -> tuple[int, str, str]:
    """Run a program of the environment without the person's settings; its exit code and what it printed."""
    if not (_FOLDER / "st").is_file():
        pytest.fail("The clients are not installed: packaging/clients.sh")
    variables = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))
    }
    variables |= {"HOME": str(folder), "LITELLM_LOCAL_MODEL_COST_MAP": "True", "NO_COLOR": "1"}
    process = await asyncio.create_subprocess_exec(
        str(_FOLDER / program),
        *words,
        env=variables,
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, error = await asyncio.wait_for(process.communicate(), seconds)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, out.decode(errors="replace"), error.decode(errors="replace")
