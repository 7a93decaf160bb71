"""Without the patch a temperature is lost on its way to the drafted tokens, with it it arrives."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from engine_host.overlay.bundle import write_bundle
from engine_host.overlay.patch_catalog import BUILT_IN, PatchCatalog
from tests.vllm_environment import vllm_python, vllm_version

PATCH = "cpu-speculation-sampling"
# Three requests with 2, 1 and 2 drafted tokens; 0 means greedy and becomes 1. A lost result leaves the 7.
SCRIPT = """
import json
import torch
import vllm._custom_ops
from vllm.utils import cpu_triton_utils

found = {}
for dtype in (torch.float32, torch.int32, torch.int64):
    out = torch.full((5,), 7, dtype=dtype)
    values = torch.tensor([2, 0, 3], dtype=dtype)
    cpu_triton_utils._expand_kernel_impl(out, values, torch.tensor([2, 3, 5], dtype=torch.int32), 0, 1)
    found[str(dtype)] = out.tolist()
print("FOUND " + json.dumps(found))
"""


def expanded(environment: dict[str, str]) -> dict[str, Any]:
    """Return the output of vLLM's kernel for the values, in a process of its own."""
    run = subprocess.run(
        [str(vllm_python()), "-c", SCRIPT],
        env={**os.environ, "VLLM_NO_USAGE_STATS": "1", **environment},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    lines = [line for line in run.stdout.splitlines() if line.startswith("FOUND ")]
    assert lines, run.stderr[-3000:]
    found: dict[str, Any] = json.loads(lines[0].removeprefix("FOUND "))
    return found


def test_the_values_of_each_request_reach_its_drafted_tokens(tmp_path: Path) -> None:
    right = [2, 2, 1, 3, 3]
    plain = expanded({})
    assert plain["torch.int64"] == right
    assert plain["torch.float32"] == plain["torch.int32"] == [7] * 5, "vLLM has mended it: retire the patch"

    patch = PatchCatalog.load((BUILT_IN,)).get(PATCH)
    bundle = write_bundle([patch], vllm_version(), tmp_path / "cache")
    ledger = tmp_path / "ledger"
    ledger.mkdir()
    patched = expanded(bundle.environment(ledger, in_own_venv=False))
    assert set(map(tuple, patched.values())) == {tuple(right)}
    lines = [json.loads(line) for file in ledger.glob("*.jsonl") for line in file.read_text().splitlines()]
    (settled,) = [line for line in lines if line["event"] == "settled"]
    assert (settled["patch"], settled["outcome"]) == (PATCH, "applied")
