"""Measure the overlay's cost in a process of vLLM: `python -m engine_host.bench.overlay_cost [--runs N]`.

Each run starts Python three times, in turns: without the overlay, with the overlay there but nothing asked of
it, and with all patches for this version. The process imports what vLLM's own processes import. CPU seconds
(user and system) are compared, because wall time on a busy machine says little: the lowest, to which other
work added least, and the median. The overlay's own clock, which the ledger holds, stands beside them.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from engine_host.core.paths import Folders
from engine_host.engines.vllm.installations import VllmEnvironment, VllmInstallations
from engine_host.overlay.bundle import Bundle, write_bundle
from engine_host.overlay.loaded_patch import LoadedPatch
from engine_host.overlay.patch_catalog import PatchCatalog
from engine_host.overlay.selection import StartProperties, gate
from engine_host.protocol.patches import PatchReason

# What an API server, an EngineCore and a worker import between them.
IMPORTS = """
import vllm.entrypoints.openai.api_server
import vllm.v1.engine.core
import vllm.v1.worker.gpu_model_runner
"""
VARIANTS = ("without", "nothing asked", "all patches")
LIMIT_MS = 150


@dataclass(frozen=True)
class Run:
    """One start: CPU seconds of the process, and milliseconds by the overlay's own clock."""

    seconds: float
    own_ms: float | None


def start(python: Path, variables: dict[str, str], ledger: Path) -> Run:
    """Start one process and measure it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([str(python), "-c", IMPORTS], env=variables, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    lines = [json.loads(line) for file in ledger.glob("*.jsonl") for line in file.read_text().splitlines()]
    for file in ledger.iterdir():
        file.unlink()
    own = [line["overhead_ms"] for line in lines if line.get("overhead_ms") is not None]
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(spent, max(own) if own else None)


def every_patch(environment: VllmEnvironment) -> list[LoadedPatch]:
    """Every patch for this version and platform, whatever the model: more than any one start has."""
    here = StartProperties(vllm=environment.version, platform=environment.build)
    elsewhere = {PatchReason.OUT_OF_RANGE, PatchReason.WRONG_PLATFORM}
    return [
        patch
        for patch in PatchCatalog.load().patches.values()
        if (decision := gate(patch, here)) is None or decision.reason not in elsewhere
    ]


def rounds(python: Path, bundle: Bundle, scratch: Path, *, warm: bool = True) -> Iterator[dict[str, Run]]:
    """One start in each way, again and again; `warm`: a round before the first fills the disk's cache."""
    ledger = scratch / "ledger"
    ledger.mkdir()
    plain = {
        name: value for name, value in os.environ.items() if not name.startswith(("VLLM_", "SNDR_", "PYTHON"))
    }
    plain |= {"VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1", "VLLM_CACHE_ROOT": str(scratch / "vllm")}
    variables = {
        "without": plain,
        "nothing asked": {**plain, "PYTHONPATH": str(bundle.folder)},
        "all patches": plain | bundle.environment(ledger, in_own_venv=False),
    }
    for variant in VARIANTS if warm else ():
        start(python, variables[variant], ledger)
    while True:
        yield {variant: start(python, variables[variant], ledger) for variant in VARIANTS}


def main() -> int:
    """Measure and print a table; 1 when all patches cost a process more than the limit."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--environment", help="an installed environment of vLLM, such as 0.32.0-cpu")
    arguments = parser.parse_args()
    cache = Folders.resolve().cache
    environment = VllmInstallations(cache / "vllm-environments", lambda: False).find(arguments.environment)
    patches = every_patch(environment)
    with tempfile.TemporaryDirectory(prefix="sndr-cost-") as folder:
        bundle = write_bundle(patches, environment.version, Path(folder))
        found = list(islice(rounds(environment.python, bundle, Path(folder)), arguments.runs))
    print(
        f"{environment.label}, {len(patches)} patches, {arguments.runs} runs in turns; CPU seconds a process"
    )
    print(f"{'':<14}{'lowest':>9}{'median':>9}{'highest':>9}{'more (lowest)':>15}{'own clock':>12}")
    base = min(one["without"].seconds for one in found)
    for variant in VARIANTS:
        seconds = sorted(one[variant].seconds for one in found)
        own = [ms for one in found if (ms := one[variant].own_ms) is not None]
        more = f"{1000 * (seconds[0] - base):+.0f} ms" if variant != "without" else ""
        clock = f"{statistics.median(own):.1f} ms" if own else "—"
        middle = statistics.median(seconds)
        print(f"{variant:<14}{seconds[0]:>9.2f}{middle:>9.2f}{seconds[-1]:>9.2f}{more:>15}{clock:>12}")
    cost = 1000 * (min(one["all patches"].seconds for one in found) - base)
    print(f"{'missed' if cost > LIMIT_MS else 'kept'}: at most {LIMIT_MS} ms more a process (lowest)")
    return int(cost > LIMIT_MS)


if __name__ == "__main__":
    raise SystemExit(main())
