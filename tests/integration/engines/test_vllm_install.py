"""The real CPU build of vLLM, installed by the real command into a fresh cache; uv's own cache is warm."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine_host.engines.vllm.environment_folder import read_record
from engine_host.engines.vllm.installations import tree_hash
from engine_host.protocol.engines import Installation
from engine_host.protocol.jobs import Job, JobKind, JobState
from engine_host.protocol.operations import table as ops
from tests.integration.host.conftest import RunningHost
from tests.vllm_environment import site_packages, vllm_venv

pytestmark = pytest.mark.timeout(240)
WANTED = "0.32.0-cpu"


def sndr(*words: str) -> Any:
    """The answer of a command, as JSON."""
    said = subprocess.run(
        [sys.executable, "-m", "engine_host", *words, "--json"],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert said.returncode == 0, (said.stdout[-3000:], said.stderr[-3000:])
    return json.loads(said.stdout.splitlines()[-1])


def listed(host: RunningHost) -> Installation:
    """How the host lists it."""
    page = host.client.call(ops.INSTALLATIONS)
    return next(one for one in page.installations if one.id == WANTED)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningHost]:
    """A host with a cache of its own, which the commands find."""
    monkeypatch.delenv("SNDR_CACHE")
    running = RunningHost().connect()
    yield running
    running.end()


def test_the_cpu_build_is_installed_as_recorded_and_removed(home: Path, host: RunningHost) -> None:
    known = vllm_venv()
    environment = home / "cache" / "vllm-environments" / WANTED
    assert not listed(host).present
    job = Job.model_validate(sndr("engine", "install", "vllm", "--build", "cpu"))
    assert (job.kind, job.state) == (JobKind.ENGINE_INSTALL, JobState.DONE)
    assert job.result["folder"] == str(environment)
    assert job.result["repaired"] == ["torchvision", "metadata"]
    one = listed(host)
    assert (one.present, one.problem, one.leftover) == (True, None, None)
    record = read_record(known) or {}
    there = tree_hash(site_packages() / "vllm")
    assert one.tree_hash == there, "every install of a pin has the same vLLM, byte for byte"
    assert record.get("tree_hash", there) == there, "and the one that engines ran from is still as it was"
    (packages,) = environment.glob("lib/python3*/site-packages")
    assert os.stat(packages / "torchvision" / "__init__.py").st_nlink == 1, "uv's cache is not repaired"
    job = Job.model_validate(sndr("engine", "remove", "vllm", "--build", "cpu"))
    assert (job.kind, job.state) == (JobKind.ENGINE_REMOVE, JobState.DONE)
    assert job.result["freed"] > 1 << 30
    assert list(environment.parent.iterdir()) == []
    assert not listed(host).present
