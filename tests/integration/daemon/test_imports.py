"""A host that does nothing has not imported what it has no use for: each of these is megabytes of memory."""

import subprocess
import sys

_UNUSED = ("rich", "pygments", "prometheus_client", "ruamel.yaml", "numpy", "PySide6")


def test_an_idle_host_is_without_what_only_others_use() -> None:
    said = subprocess.run(
        [sys.executable, "-c", "import engine_host.daemon.host, sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert "httpx" in said
    assert not set(_UNUSED) & set(said)
