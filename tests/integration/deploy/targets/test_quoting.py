"""What is quoted for a shell, read by the real one."""

import subprocess

from engine_host.deploy.deployment import Root
from engine_host.deploy.targets.quoting import shell
from tests.unit.deploy.targets.test_quoting import HARD


def test_bash_reads_it_as_shlex_does() -> None:
    word = shell(f"{Root.CACHE}/{HARD}", {Root.CACHE: "$cache"})
    said = subprocess.run(
        ["bash", "-c", f"cache='/a b/$c'; printf %s {word}"], capture_output=True, text=True, check=True
    )
    assert said.stdout == f"/a b/$c/{HARD}"
