"""Print what makes a vLLM that no host starts load this program's patches, as lines for a shell.

usage: variables=$(python packaging/gpu/overlay_variables.py FOLDER [--kv turboquant_k8v4] [--vllm 0.32.0]
                             [--sm 9.0] [--platform cuda] [--speculation mtp] [--on PATCH]
                             [--off PATCH]) && eval "$variables"

For measurements that call vLLM themselves (`engine_host.bench.gpu`). The patches are those that a plan for
the bundled model has by default; what each process says of them is written into FOLDER/ledger.
"""

import argparse
import json
import shlex
import sys
from pathlib import Path

from engine_host.overlay.bundle import write_bundle
from engine_host.overlay.patch_catalog import PatchCatalog
from engine_host.overlay.selection import StartProperties, Switches, select
from engine_host.protocol.patches import PatchChoice

MODEL = Path(__file__).resolve().parents[2] / "resources" / "models" / "sndr-demo"


def main() -> int:
    """Write the bundle, then name the patches as a comment and export the variables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kv", default="auto")
    parser.add_argument("--vllm", default="0.32.0")
    parser.add_argument("--sm", default="9.0")
    parser.add_argument("--platform", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--speculation", default="mtp")
    parser.add_argument("--on", action="append", default=[], help="beside those that are by default")
    parser.add_argument("--off", action="append", default=[])
    asked = parser.parse_args()
    start = StartProperties(
        vllm=asked.vllm,
        platform=asked.platform,
        sm=(asked.sm,) if asked.platform == "cuda" else (),
        kv_cache_dtype=asked.kv,
        architectures=tuple(json.loads((MODEL / "config.json").read_text(encoding="utf-8"))["architectures"]),
        speculation=asked.speculation,
    )
    patches = select(
        PatchCatalog.load(), start, Switches(), PatchChoice(on=tuple(asked.on), off=tuple(asked.off))
    ).chosen
    ledger = asked.folder / "ledger"
    ledger.mkdir(parents=True, exist_ok=True)
    bundle = write_bundle(patches, asked.vllm, asked.folder)
    print("#", *(patch.id for patch in patches))
    for name, value in bundle.environment(ledger, in_own_venv=False).items():
        print(f"export {name}={shlex.quote(value)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
