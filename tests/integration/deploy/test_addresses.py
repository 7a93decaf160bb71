"""Addresses in the scripts that are written down, read by the real bash."""

import os
import subprocess
from dataclasses import replace

import pytest

from engine_host.deploy.targets.parts import listening
from engine_host.protocol.launch.deploy import RenderTarget
from tests.unit.deploy.samples import (
    deployed,
    wanted_of,
)


@pytest.mark.parametrize(
    ("default", "given", "address", "shown"),
    [
        ("::1", "", "::1", "[::1]"),
        ("127.0.0.1", "", "127.0.0.1", "127.0.0.1"),
        ("127.0.0.1", "fe80::2", "fe80::2", "[fe80::2]"),
        ("127.0.0.1", "[::]", "::", "[::]"),
        ("::1", "0.0.0.0", "0.0.0.0", "0.0.0.0"),
    ],
)
def test_scripts_take_an_address_with_and_without_brackets(
    default: str, given: str, address: str, shown: str
) -> None:
    lines = listening(deployed(replace(wanted_of("demo-vllm"), address=default), RenderTarget.DOCKER))
    script = f'set -euo pipefail\n{lines}echo "$address $at:$port"'
    said = subprocess.run(
        ["bash", "-c", script],
        env={"SNDR_ADDRESS": given, "PATH": os.defpath},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == f"{address} {shown}:8000\n"
