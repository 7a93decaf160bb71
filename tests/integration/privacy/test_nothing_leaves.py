"""Nothing leaves the machine unasked: whom host, engine, commands and window speak to, as the kernel saw."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.host_process import ROOT, environment

CALLS = "connect,sendto,sendmsg,sendmmsg"
# What a call names: an address of IPv4 or of IPv6.
ADDRESS = re.compile(r'inet_addr\("([^"]+)"\)|inet_pton\(AF_INET6, "([^"]+)"')
MAIN_JOB = """
set -eu
trap '"$PYTHON" -m engine_host quit' EXIT
"$PYTHON" -m engine_host run --demo --detach
"$PYTHON" -m engine_host chat "Hello"
"$PYTHON" -m engine_host presets list
"$PYTHON" -m engine_host fit --preset demo-llamacpp
"$PYTHON" -m engine_host models
"$PYTHON" -m engine_host engine list
"$PYTHON" -m engine_host patches list
QT_QPA_PLATFORM=offscreen timeout -s INT 6 "$PYTHON" -m sndr_gui || true
"""


def addresses(program: list[str], trace: Path) -> set[str]:
    """Return the addresses that a program, and all that it starts, speaks to."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    done = subprocess.run(
        [strace, "-f", "-qq", "-e", "signal=none", "-e", f"trace={CALLS}", "-o", str(trace), *program],
        env=environment(PYTHON=sys.executable),
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    if "Operation not permitted" in done.stderr:
        pytest.skip("this machine lets nobody trace")
    assert done.returncode == 0, done.stderr[-2000:]
    text = trace.read_text(encoding="utf-8", errors="replace")
    return {first or second for first, second in ADDRESS.findall(text)}


def test_an_address_is_seen(tmp_path: Path) -> None:
    program = "import socket; socket.socket(2, 2).sendto(b'x', ('192.0.2.1', 9))"
    assert addresses([sys.executable, "-c", program], tmp_path / "trace") == {"192.0.2.1"}


@pytest.mark.usefixtures("home")
def test_the_main_job_speaks_to_this_machine_alone(tmp_path: Path) -> None:
    found = addresses(["sh", "-c", MAIN_JOB], tmp_path / "trace")
    assert "127.0.0.1" in found, "nobody asked the endpoint"
    assert found <= {"127.0.0.1", "::1"}
