"""FAKE machines: a second home on this one, reached through a shell instead of ssh."""

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine_host.remote.run import RemoteOutcome, RemoteScript, fed, run_over

_OURS = ("SNDR_", "XDG_", "PYTHON", "VIRTUAL_ENV", "PIP_")


@dataclass
class SecondHome:
    """FAKE: a machine that is this one, for another home; `breaks` is called with what is sent."""

    home: Path
    name: str = "gpu"
    variables: dict[str, str] = field(default_factory=dict)
    breaks: Callable[[bytes], None] = lambda _data: None

    @property
    def environment(self) -> dict[str, str]:
        """What a login there has."""
        own = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
        run = self.home.parent / "run"
        run.mkdir(mode=0o700, exist_ok=True)
        return {**own, "HOME": str(self.home), "XDG_RUNTIME_DIR": str(run), **self.variables}

    async def run(self, script: RemoteScript, data: bytes, seconds: float) -> RemoteOutcome:
        """Run it as sshd does: by the login shell, in the home."""
        self.breaks(data)
        argv = ("/bin/sh", "-c", script.interpreter.value)
        return await run_over(argv, self.environment, fed(script.sent(data)), seconds, 4 << 20)


def step_of(data: bytes) -> dict[str, Any]:
    """The request in what is sent for a step."""
    size, _, rest = data.partition(b"\n")
    size, _, rest = rest[int(size) :].partition(b"\n")
    asked = json.loads(rest[: int(size)])
    assert isinstance(asked, dict)
    return asked


def tree(home: Path) -> dict[str, str]:
    """Everything below a home: kind and content, by path."""
    found = {}
    for path in sorted(home.rglob("*")):
        name = path.relative_to(home).as_posix()
        if path.is_symlink():
            found[name] = f"link {os.readlink(path)}"
        elif path.is_file():
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            found[name] = "folder" if path.is_dir() else "other"
    return found
