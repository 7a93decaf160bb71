"""Starts that were predicted before they were measured; docs/proof.md shows what was first written."""

import json
from pathlib import Path
from typing import Any

import pytest

from engine_host.fit import vllm
from engine_host.fit.estimate import estimate
from engine_host.fit.shapes.read import model_of_config
from engine_host.fit.start import Device, Start
from engine_host.protocol.launch.plans import EngineKind

HERE = Path(__file__).parent
PROOF = HERE.parents[2] / "docs" / "proof.md"
PREDICTED: dict[str, Any] = json.loads((HERE / "predicted_starts.json").read_text(encoding="utf-8"))
STARTS = [pytest.param(one, id=one["shape"]) for one in PREDICTED["starts"]]
NOT_YET = "not measured yet"


def row(one: dict[str, Any]) -> str:
    """A row of the table in docs/proof.md."""
    said, seen = one["predicted"], one["measured"]
    measured = [NOT_YET] * 3
    if seen is not None:
        error = said["blocks"] / seen["blocks"] - 1
        measured = [
            f"{seen['weights'] / 2**30:.2f}",
            f"{seen['blocks']:,} ({error:+.2%})",
            f"{seen['kv_tokens']:,}",
        ]
    cells = [
        one["shape"],
        "bf16" if one["kv"] == "auto" else one["kv"],
        str(one["tensor_parallel"]),
        f"{one['context']:,}",
        f"{said['weights'] / 2**30:.2f}",
        f"{said['groups']} × {said['block_tokens']}",
        f"{said['blocks']:,}",
        f"{said['kv_tokens']:,}",
        *measured,
    ]
    return f"| {' | '.join(cells)} |"


@pytest.mark.parametrize("one", STARTS)
def test_the_table_shows_the_first_prediction(one: dict[str, Any]) -> None:
    assert row(one) in PROOF.read_text(encoding="utf-8").splitlines(), row(one)


@pytest.mark.parametrize("one", STARTS)
def test_the_start_can_be_computed(one: dict[str, Any]) -> None:
    """Nothing holds the calculator to what it first said; it holds itself to what was measured."""
    config = json.loads((HERE / "shapes" / f"{one['shape']}.json").read_text(encoding="utf-8"))
    model = model_of_config(config, one["shape"])
    start = Start(
        engine=EngineKind.VLLM,
        devices=(Device("NVIDIA H200", PREDICTED["total"]),) * one["tensor_parallel"],
        cpu=False,
        context=one["context"],
        streams=one["streams"],
        kv=one["kv"],
        gpu_memory=one["gpu_memory"],
        batched_tokens=one["batched_tokens"],
        prefix_caching=one["prefix_caching"],
        eager=one["eager"],
        version=PREDICTED["vllm"],
    )
    found = estimate(model, start)
    pool = vllm.pool(model, start)
    if one["measured"] is not None:
        assert pool.blocks(found.kv_budget) == pytest.approx(
            one["measured"]["blocks"], rel=one.get("within", 0.03)
        )
    assert pool.stream_blocks(start.context) > 0
