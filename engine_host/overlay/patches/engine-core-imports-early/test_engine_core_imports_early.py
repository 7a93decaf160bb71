"""Real processes with a FAKE package vllm: who does the work that the manager spawns."""

import json
from pathlib import Path

import pytest

from engine_host.overlay.loaded_patch import LoadedPatch
from engine_host.overlay.patch_file import read_patch_file
from tests.unit.overlay.fake_vllm import FakeVllm

ID = "engine-core-imports-early"
VERSION = """
try:
    __version__ = "0.32.0"
except Exception:
    __version_tuple__ = (0, 0, __version__)
"""
UTILS = """
from multiprocessing import get_context
from pathlib import Path


class CoreEngineProcManager:
    def __init__(
        self, local_engine_count, start_index, local_start_index, vllm_config, local_client,
        handshake_address, executor_class, log_stats, client_handshake_address=None, tensor_queue=None,
    ):
        work = Path(handshake_address).write_text
        self.process = get_context("spawn").Process(target=work, args=("done",), name="EngineCore")
        self.process.start()
        self.process.join()
"""
SCRIPT = """
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

if __name__ == "__main__":
    from sndr_overlay_patches.engine_core_imports_early import ahead

    ahead.FEWEST_CORES = int(sys.argv[4])
    import vllm.version
    from vllm.v1.engine.utils import CoreEngineProcManager

    waiting = ahead._waiting[0] if ahead._waiting else None
    os.environ[sys.argv[5]] = "changed"
    config = SimpleNamespace(parallel_config=SimpleNamespace(data_parallel_size=1))
    manager = CoreEngineProcManager(1, 0, 0, config, True, "done.txt", None, True)
    told = [waiting is not None, manager.process.pid == waiting, manager.process.exitcode]
    print(json.dumps([*told, Path("done.txt").read_text()]))
"""


@pytest.mark.parametrize(
    ("cores", "gpus", "variable", "told", "note"),
    [
        ("1", "1", "OMP_NUM_THREADS_OF_ANOTHER", [True, True, 0, "done"], "beside the API server's"),
        ("1", "1", "CUDA_SOMETHING", [True, False, 0, "done"], "changed in between: CUDA_SOMETHING"),
        ("9999", "1", "CUDA_SOMETHING", [False, False, 0, "done"], None),
        ("1", "2", "CUDA_SOMETHING", [False, False, 0, "done"], None),
    ],
    ids=["taken", "read at the beginning", "few cores", "two GPUs"],
)
def test_the_work_is_done_by_the_process_that_waits(
    tmp_path: Path, cores: str, gpus: str, variable: str, told: list[object], note: str | None
) -> None:
    fake = FakeVllm(tmp_path)
    fake.write("version", VERSION)
    for name in ("v1/__init__", "v1/engine/__init__"):
        fake.write(name, "")
    fake.write("v1/engine/utils", UTILS)
    folder = Path(__file__).parent
    fake.patches.append(LoadedPatch(folder, read_patch_file(folder)))
    ran = fake.run(SCRIPT, "serve", "--tensor-parallel-size", gpus, cores, variable)
    assert json.loads(ran.stdout) == told, ran.stderr
    assert fake_outcome(ran.settled(ID)) == "applied"
    notes = [line["detail"] for line in ran.ledger if line["event"] == "note"]
    assert [note is not None and note in one for one in notes] == ([True] if note else [])


def fake_outcome(settled: tuple[str, str | None] | None) -> str | None:
    """Return the outcome alone."""
    return settled[0] if settled else None
