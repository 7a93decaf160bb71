"""What the overlay costs a process of the real vLLM, with it and without it in one run."""

from itertools import islice
from pathlib import Path
from statistics import median

import pytest

from engine_host.bench.overlay_cost import every_patch, rounds
from engine_host.engines.vllm.installations import own_environment
from engine_host.overlay.bundle import write_bundle
from tests.vllm_environment import vllm_venv

LIMIT = 0.150
ROUNDS = 6
pytestmark = pytest.mark.timeout(600)


def test_at_most_150_ms_a_process(tmp_path: Path) -> None:
    """CPU time with and without it, in turns; runs of one way lie further apart than the limit itself.

    Other work only ever adds, so the lowest of each way come closer to the truth with every round, and one
    round may be enough. Where they do not meet, an ordinary start with all patches must still cost no more
    than the limit beyond what a start without any may cost. The overlay's own clock, which counts the import
    of its own modules and the wait for a processor too, holds the limit in the quickest start.
    """
    environment = own_environment(vllm_venv())
    patches = every_patch(environment)
    assert len(patches) >= 8
    bundle = write_bundle(patches, environment.version, tmp_path)
    without: list[float] = []
    patched: list[float] = []
    own: list[float] = []
    ways = ("without", "all patches")
    for found in islice(rounds(environment.python, bundle, tmp_path, ways), ROUNDS):
        clock = found["all patches"].own_ms
        assert clock is not None, "no process wrote a ledger"
        assert clock > 0
        own.append(clock)
        assert found["without"].own_ms is None, "the overlay was in a process that is to be without it"
        without.append(found["without"].seconds)
        patched.append(found["all patches"].seconds)
        if min(own) <= 1000 * LIMIT and min(patched) - min(without) <= LIMIT:
            return
    assert min(own) <= 1000 * LIMIT, own
    assert median(patched) - max(without) <= LIMIT, (without, patched)
