"""Python scripts in the vLLM environment, each as if it had a Python of its own from the start.

They run in children of one process that has imported PyTorch and the like (tests/vllm_fork_server.py), which
saves most of the time; vLLM is imported anew each time. With SNDR_TEST_ALONE=1 nothing is shared at all.
"""

import atexit
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from tests.vllm_environment import vllm_python

SERVER = Path(__file__).parent / "vllm_fork_server.py"
START = 240.0
# As long as an engine's own processes may take to end after the script.
GRACE = 20.0


def run_script(
    script: Path, arguments: Sequence[str], variables: Mapping[str, str], folder: Path, timeout: float
) -> "subprocess.CompletedProcess[str]":
    """Run a script to its end, in a folder. Raises subprocess.TimeoutExpired."""
    if not os.environ.get("SNDR_TEST_ALONE"):
        return _server().run(script, arguments, variables, folder, timeout)
    return subprocess.run(
        [str(vllm_python()), str(script), *arguments],
        env=dict(variables),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


class _Server:
    """The process that imports once."""

    def __init__(self) -> None:
        variables = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("VLLM_", "SNDR_", "PYTHON", "PYTEST"))
        }
        self._process = subprocess.Popen(
            [str(vllm_python()), str(SERVER)],
            env=variables | {"HF_HUB_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        atexit.register(self.end)

    def end(self) -> None:
        """End it; no script runs any more."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(20)
        self._process.stdout.close()

    def run(
        self,
        script: Path,
        arguments: Sequence[str],
        variables: Mapping[str, str],
        folder: Path,
        timeout: float,
    ) -> "subprocess.CompletedProcess[str]":
        """Run a script in a child."""
        out, err = folder / "stdout.txt", folder / "stderr.txt"
        asked = {
            "script": str(script),
            "arguments": list(arguments),
            "variables": dict(variables),
            "folder": str(folder),
            "stdout": str(out),
            "stderr": str(err),
        }
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        child = self._number(START)
        assert child is not None, "the server of scripts does not answer"
        code = self._number(timeout)
        if code is None:
            os.killpg(child, signal.SIGKILL)
            self._number(GRACE)
            raise subprocess.TimeoutExpired(str(script), timeout, err.read_bytes())
        _wait_for_group(child)
        said = (file.read_text(encoding="utf-8", errors="replace") for file in (out, err))
        return subprocess.CompletedProcess([str(script), *arguments], code, *said)

    def _number(self, seconds: float) -> int | None:
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], seconds)[0]:
            return None
        line = self._process.stdout.readline()
        assert line, "the server of scripts has ended"
        return int(line)


def _wait_for_group(leader: int) -> None:
    """Wait for the processes that a script started, and end by force what stays."""
    end = time.monotonic() + GRACE
    while True:
        try:
            os.killpg(leader, signal.SIGKILL if time.monotonic() > end else 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)


@cache
def _server() -> _Server:
    return _Server()
