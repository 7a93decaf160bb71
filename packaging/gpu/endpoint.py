"""Measures what the endpoint costs in front of a shape on vLLM: `sndr bench endpoint`, in a host of its own.

usage: python packaging/gpu/endpoint.py --installation VENV [--gpu N] [--shape NAME] [--streams N …]

The shape has random weights and no drafts, k8v4 and graphs. A goal that was missed or is not decided is a row
that says so; the exit code is 1 when nothing was measured.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import judge
from host_under_test import HostUnderTest
from judge import HEADING, Row, Table
from next_turns import shape_of

from engine_host.protocol.launch.plans import EngineKind, LaunchRequest, Overrides

PART = "endpoint"


def measured(asked: argparse.Namespace, host: HostUnderTest, results: dict[str, Any]) -> Iterable[Row]:
    """Start the shape and measure it through the endpoint and past it, in turns."""
    overrides = Overrides(
        speculation="off",
        kv_cache_dtype="turboquant_k8v4",
        context=4096,
        streams=64,
        kv_cache_gib=30,
        extra_arguments=("--gdn-prefill-backend=triton",),
    )
    request = LaunchRequest(
        model=str(shape_of(asked.shape, host.home / asked.shape)),
        engine=EngineKind.VLLM,
        installation=str(asked.installation),
        overrides=overrides,
        gpus=(asked.gpu,),
    )
    engine = host.start(host.plan(request))
    yield from judge.ready(PART, engine.verified, engine.stages, drafts=False)
    words = [sys.executable, "-m", "engine_host", "bench", "endpoint", engine.name]
    words += ["--repeats", asked.repeats, "--pairs", asked.pairs]
    words += [word for one in asked.streams for word in ("--streams", one)]
    done = subprocess.run(
        words,
        env={**os.environ, "SNDR_HOME": str(host.home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    results[PART] = done.stdout
    for line in filter(None, done.stdout.splitlines()):
        yield Row(PART, "sndr bench endpoint", None, line)
    # 1 says that a goal was missed or not decided.
    yield Row(PART, "it was measured", done.returncode in (0, 1), done.stderr.strip()[-300:])


def main() -> int:
    """Measure, print the table, say how many rows failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--installation", type=Path, required=True, help="an environment with vLLM in it")
    parser.add_argument("--gpu", default="0")
    parser.add_argument("--shape", default="mimo-7b", help="one of tests/unit/fit/shapes")
    parser.add_argument("--streams", action="append", default=[], help="at once; several times (1, 8, 64)")
    parser.add_argument("--repeats", default="31", help="rounds a side")
    parser.add_argument("--pairs", default="61", help="questions for TTFT")
    parser.add_argument("--out", type=Path, help="where the rows are also written, as JSON")
    asked = parser.parse_args()
    asked.installation = asked.installation.absolute()
    table = Table()
    results: dict[str, Any] = {}
    print(HEADING, flush=True)
    with HostUnderTest(400.0) as host:
        table.attempt(PART, "ran to its end", lambda: measured(asked, host, results))
    report = judge.as_json(table.rows, results=results)
    if asked.out:
        asked.out.write_text(json.dumps(report, indent=1), encoding="utf-8")
    return int(bool(report["failed"]))


if __name__ == "__main__":
    sys.exit(main())
