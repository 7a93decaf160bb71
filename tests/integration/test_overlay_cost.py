"""The bench of the overlay's cost measures what it says, in processes of the real vLLM."""

from pathlib import Path

import pytest

from engine_host.bench.overlay_cost import every_patch, rounds
from engine_host.engines.vllm.installations import own_environment
from engine_host.overlay.bundle import write_bundle
from tests.vllm_environment import vllm_venv

pytestmark = pytest.mark.timeout(300)


def test_each_way_is_what_it_is_called(tmp_path: Path) -> None:
    environment = own_environment(vllm_venv())
    patches = every_patch(environment)
    assert len(patches) >= 8
    bundle = write_bundle(patches, environment.version, tmp_path)
    found = next(rounds(environment.python, bundle, tmp_path, warm=False))
    assert found["without"].own_ms is None
    assert found["nothing asked"].own_ms is None
    clock = found["all patches"].own_ms
    assert clock is not None, "no process wrote a ledger"
    assert clock > 0
    assert all(run.seconds > 0 for run in found.values())
