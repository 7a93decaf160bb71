"""The prediction for vLLM 0.26 on an H200 against the memory that it reserved there (h200_starts.json)."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from engine_host.fit import vllm
from engine_host.fit.estimate import Estimate, estimate
from engine_host.fit.parts import Part
from engine_host.fit.shapes.read import model_of_config
from engine_host.fit.start import Device, Model, Start
from engine_host.protocol.plans import EngineKind

HERE = Path(__file__).parent
DOCS = HERE.parents[2] / "docs" / "fit.md"
MEASURED: dict[str, Any] = json.loads((HERE / "h200_starts.json").read_text(encoding="utf-8"))
CONTEXTS = {"qwen3-8b": (8192, 40960), "qwen36-27b": (32768, 262144), "qwen36-35b-a3b": (32768, 262144)}
KV_TYPES = {"auto": "bf16", "fp8": "fp8", "turboquant_k8v4": "k8v4"}
Seen = dict[str, Any]


def name(seen: Seen) -> str:
    mode = "eager" if seen["eager"] else "graphs"
    drafts = " mtp" if seen.get("speculation") else ""
    sizes = f"{seen['context']} {seen['streams']}x {seen['batched_tokens']}"
    return f"{seen['shape']} {KV_TYPES[seen['kv']]} {sizes} {mode}{drafts}"


STARTS = [pytest.param(seen, id=name(seen)) for seen in MEASURED["starts"]]


def model(seen: Seen) -> Model:
    config = json.loads((HERE / "shapes" / f"{seen['shape']}.json").read_text(encoding="utf-8"))
    return model_of_config(config, seen["shape"])


def start(seen: Seen) -> Start:
    return Start(
        engine=EngineKind.VLLM,
        devices=(Device("NVIDIA H200", MEASURED["total"]),),
        cpu=False,
        context=seen["context"],
        streams=seen["streams"],
        kv=seen["kv"],
        gpu_memory=seen["gpu_memory"],
        batched_tokens=seen["batched_tokens"],
        drafting="speculation" in seen,
        draft_tokens=seen.get("speculation", 3),
        prefix_caching=bool(seen.get("prefix_caching_used", False)),
        eager=seen["eager"],
        version=MEASURED["vllm"],
    )


def part(found: Estimate, wanted: str) -> Part:
    return next(one for one in found.parts if one.name == wanted)


def row(seen: Seen) -> str:
    """A row of the table in docs/fit.md."""
    predicted = vllm.pool(model(seen), start(seen)).blocks(estimate(model(seen), start(seen)).kv_budget)
    mode = "eager" if seen["eager"] else "graphs"
    error = f"{100 * (predicted / seen['blocks'] - 1):+.2f} %"
    cells = [
        seen["shape"],
        KV_TYPES[seen["kv"]],
        f"{seen['context']:,}",
        f"{seen['streams']} / {seen['batched_tokens']:,}",
        mode,
        str(seen["block_tokens"]),
        f"{predicted:,}",
        f"{seen['blocks']:,}",
        error,
    ]
    return f"| {' | '.join(cells)} |"


def test_every_shape_is_there_in_every_type_at_two_lengths() -> None:
    there = {(seen["shape"], seen["kv"], seen["context"]) for seen in MEASURED["starts"] if seen["eager"]}
    wanted = {
        (shape, kv, context)
        for (shape, contexts), kv in product(CONTEXTS.items(), KV_TYPES)
        for context in contexts
    }
    assert wanted <= there
    assert any(not seen["eager"] for seen in MEASURED["starts"]), "some with CUDA graphs"


@pytest.mark.parametrize("seen", STARTS)
def test_blocks_are_predicted_within_three_per_cent(seen: Seen) -> None:
    pool = vllm.pool(model(seen), start(seen))
    room = estimate(model(seen), start(seen)).kv_budget
    assert pool.block_tokens == seen["block_tokens"]
    assert pool.blocks(room) == pytest.approx(seen["blocks"], rel=0.03)
    assert room == pytest.approx(seen["available"], rel=0.03)


@pytest.mark.parametrize("seen", STARTS)
def test_blocks_and_tokens_of_the_memory_that_there_was_are_exact(seen: Seen) -> None:
    pool = vllm.pool(model(seen), start(seen))
    assert pool.blocks(seen["available"]) == seen["blocks"]
    assert pool.tokens(seen["available"], seen["context"]) == seen["kv_tokens"]


@pytest.mark.parametrize("seen", STARTS)
def test_every_part_lies_where_it_was_said_to(seen: Seen) -> None:
    found = estimate(model(seen), start(seen))
    weights, activations = part(found, "weights"), part(found, "activations")
    assert weights.bytes == pytest.approx(seen["weights"], rel=0.002)
    assert activations.low <= seen["activations"] <= activations.high
    if seen["eager"]:
        assert activations.bytes == pytest.approx(seen["activations"], rel=0.02)
    libraries, context = part(found, "libraries"), part(found, "CUDA context")
    assert libraries.low <= seen["non_torch"] <= libraries.high
    assert context.low <= seen["non_torch_at_start"] <= context.high
    if "graphs" in seen:
        graphs = part(found, "CUDA graphs")
        assert graphs.low <= seen["graphs"] <= graphs.high
        assert graphs.beyond is (seen["graphs_estimate"] == 0)


def test_the_table_of_the_docs_is_this_one() -> None:
    written = DOCS.read_text(encoding="utf-8")
    assert [seen for seen in MEASURED["starts"] if row(seen) not in written] == []
