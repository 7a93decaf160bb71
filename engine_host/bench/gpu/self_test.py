"""Run every TurboQuant kernel on this GPU against float64, as an engine does at its start, on more shapes.

usage: self_test.py [--kv turboquant_k8v4] [--device cuda] --out FILE

It needs torch and Triton alone, not this program: a proof runs it with an engine's Python. Hopper has a
kernel of its own beside the one for every GPU; both are tested there. The file gets one JSON object.
"""

import argparse
import importlib
import json
import sys
import types
from pathlib import Path
from typing import Any

PATCH = Path(__file__).resolve().parents[2] / "overlay" / "patches" / "turboquant-grouped-attention"
# Head size, query heads, KV heads; a step of MTP 3 verifies four tokens.
SHAPES = ((128, 32, 8), (128, 28, 4), (256, 24, 4), (64, 16, 8))
TOKENS = 4
BLOCK = 64


def patch() -> Any:
    """The patch's folder as a package, without the overlay."""
    name = "grouped_attention"
    package = types.ModuleType(name)
    package.__path__ = [str(PATCH)]
    sys.modules[name] = package
    return importlib.import_module(f"{name}.selftest")


def tested(preset: str, device: str, capability: tuple[int, int]) -> dict[str, Any]:
    """Errors of all shapes on all kernels of a GPU; the first fault stands in `why`."""
    kernels = patch()
    always_on_hopper = importlib.import_module(f"{kernels.__package__}.kernels.attention").always_on_hopper
    worst, differing, shapes, faults = 0.0, 0, 0, []
    hopper_too = capability[0] == 9
    for hopper in (True, False) if hopper_too else (False,):
        for head, heads, kv_heads in SHAPES:
            shape = (preset, head, heads, kv_heads, BLOCK, TOKENS, capability >= (8, 9))
            named = f"{preset}, {head}, {heads}/{kv_heads}, {'Hopper' if hopper else 'every GPU'}"
            shapes += 1
            try:
                error = kernels.worst_error(*shape, device=device, hopper=hopper)
                # As an engine does: in batch-invariant mode one kernel or the other takes every row.
                only = hopper and always_on_hopper(preset, head, heads, kv_heads, TOKENS)
                rows = kernels.rows_that_differ(*shape, device=device, hopper=only)
            except Exception as failed:  # noqa: BLE001 - whatever a compiler raises on a GPU that nobody tried
                faults.append(f"{named}: {type(failed).__name__}: {str(failed)[:300]}")
                continue
            print(f"{named}: error {error:.1e}, {rows} rows differ", flush=True)
            # Not a number is larger than none.
            worst = max(worst, error) if error == error else float("inf")
            differing += rows
            if not error < kernels.MOST_ERROR:
                faults.append(f"{named}: off by {error:.1e}")
            elif rows:
                faults.append(f"{named}: {rows} rows depend on the rows beside them")
    return {
        "passed": not faults,
        "shapes": shapes,
        "worst_error": None if worst == float("inf") else worst,
        "rows_that_differ": differing,
        "kernels": "for Hopper, and for every GPU" if hopper_too else "for every GPU",
        "why": "; ".join(faults[:3]),
    }


def main() -> None:
    """Test, and write what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kv", default="turboquant_k8v4")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    torch = importlib.import_module("torch")
    capability = (8, 0)
    if asked.device == "cuda":
        if not torch.cuda.is_available():
            sys.exit("There is no CUDA GPU that this Python's torch can use.")
        capability = torch.cuda.get_device_capability()
    found = tested(asked.kv.removeprefix("turboquant_"), asked.device, capability)
    asked.out.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
