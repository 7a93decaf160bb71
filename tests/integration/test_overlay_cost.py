"""What the overlay costs a process of the real vLLM, with it and without it in one run."""

from itertools import islice
from pathlib import Path

import pytest

from engine_host.bench.overlay_cost import every_patch, rounds
from engine_host.engines.vllm_installations import own_environment
from engine_host.overlay.bundle import write_bundle
from tests.vllm_environment import vllm_venv

LIMIT = 0.150
ROUNDS = 6
pytestmark = pytest.mark.timeout(600)


def test_at_most_150_ms_a_process(tmp_path: Path) -> None:
    """Of each way the lowest CPU time: other work only ever adds, so more rounds come closer to the truth.

    The overlay's own clock, which counts the import of its own modules too, holds the limit in every start.
    """
    environment = own_environment(vllm_venv())
    patches = every_patch(environment)
    assert len(patches) >= 8
    bundle = write_bundle(patches, environment.version, tmp_path)
    without: list[float] = []
    patched: list[float] = []
    for found in islice(rounds(environment.python, bundle, tmp_path), ROUNDS):
        own = found["all patches"].own_ms
        assert own is not None, "no process wrote a ledger"
        assert 0 < own <= 1000 * LIMIT
        assert found["without"].own_ms is None, "the overlay was in a process that is to be without it"
        without.append(found["without"].seconds)
        patched.append(found["all patches"].seconds)
        if min(patched) - min(without) <= LIMIT:
            break
    assert min(patched) - min(without) <= LIMIT, (without, patched)
