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
from engine_host.protocol.launch.plans import EngineKind

HERE = Path(__file__).parent
DOCS = HERE.parents[2] / "docs" / "fit.md"
MEASURED: dict[str, Any] = json.loads((HERE / "h200_starts.json").read_text(encoding="utf-8"))
CONTEXTS = {"qwen3-8b": (8192, 40960), "qwen36-27b": (32768, 262144), "qwen36-35b-a3b": (32768, 262144)}
KV_TYPES = {"auto": "bf16", "fp8": "fp8", "turboquant_k8v4": "k8v4"}
MeasuredStart = dict[str, Any]


def name(measured: MeasuredStart) -> str:
    mode = "eager" if measured["eager"] else "graphs"
    drafts = " mtp" if measured.get("speculation") else ""
    sizes = f"{measured['context']} {measured['streams']}x {measured['batched_tokens']}"
    return f"{measured['shape']} {KV_TYPES[measured['kv']]} {sizes} {mode}{drafts}"


STARTS = [pytest.param(measured, id=name(measured)) for measured in MEASURED["starts"]]


def model(measured: MeasuredStart) -> Model:
    config = json.loads((HERE / "shapes" / f"{measured['shape']}.json").read_text(encoding="utf-8"))
    return model_of_config(config, measured["shape"])


def start(measured: MeasuredStart) -> Start:
    return Start(
        engine=EngineKind.VLLM,
        devices=(Device("NVIDIA H200", MEASURED["total"]),),
        cpu=False,
        context=measured["context"],
        streams=measured["streams"],
        kv=measured["kv"],
        gpu_memory=measured["gpu_memory"],
        batched_tokens=measured["batched_tokens"],
        drafting="speculation" in measured,
        draft_tokens=measured.get("speculation", 3),
        prefix_caching=bool(measured.get("prefix_caching_used", False)),
        eager=measured["eager"],
        version=MEASURED["vllm"],
    )


def part(found: Estimate, wanted: str) -> Part:
    return next(one for one in found.parts if one.name == wanted)


def row(measured: MeasuredStart) -> str:
    """A row of the table in docs/fit.md."""
    predicted = vllm.pool(model(measured), start(measured)).blocks(
        estimate(model(measured), start(measured)).kv_budget
    )
    mode = "eager" if measured["eager"] else "graphs"
    error = f"{100 * (predicted / measured['blocks'] - 1):+.2f} %"
    cells = [
        measured["shape"],
        KV_TYPES[measured["kv"]],
        f"{measured['context']:,}",
        f"{measured['streams']} / {measured['batched_tokens']:,}",
        mode,
        str(measured["block_tokens"]),
        f"{predicted:,}",
        f"{measured['blocks']:,}",
        error,
    ]
    return f"| {' | '.join(cells)} |"


def test_every_shape_is_there_in_every_type_at_two_lengths() -> None:
    there = {
        (measured["shape"], measured["kv"], measured["context"])
        for measured in MEASURED["starts"]
        if measured["eager"]
    }
    wanted = {
        (shape, kv, context)
        for (shape, contexts), kv in product(CONTEXTS.items(), KV_TYPES)
        for context in contexts
    }
    assert wanted <= there
    assert any(not measured["eager"] for measured in MEASURED["starts"]), "some with CUDA graphs"


@pytest.mark.parametrize("measured", STARTS)
def test_blocks_are_predicted_within_three_per_cent(measured: MeasuredStart) -> None:
    pool = vllm.pool(model(measured), start(measured))
    room = estimate(model(measured), start(measured)).kv_budget
    assert pool.block_tokens == measured["block_tokens"]
    assert pool.blocks(room) == pytest.approx(measured["blocks"], rel=0.03)
    assert room == pytest.approx(measured["available"], rel=0.03)


@pytest.mark.parametrize("measured", STARTS)
def test_blocks_and_tokens_of_the_memory_that_there_was_are_exact(measured: MeasuredStart) -> None:
    pool = vllm.pool(model(measured), start(measured))
    assert pool.blocks(measured["available"]) == measured["blocks"]
    assert pool.tokens(measured["available"], measured["context"]) == measured["kv_tokens"]


@pytest.mark.parametrize("measured", STARTS)
def test_every_part_lies_where_it_was_said_to(measured: MeasuredStart) -> None:
    found = estimate(model(measured), start(measured))
    weights, activations = part(found, "weights"), part(found, "activations")
    assert weights.bytes == pytest.approx(measured["weights"], rel=0.002)
    assert activations.low <= measured["activations"] <= activations.high
    if measured["eager"]:
        assert activations.bytes == pytest.approx(measured["activations"], rel=0.02)
    libraries, context = part(found, "libraries"), part(found, "CUDA context")
    assert libraries.low <= measured["non_torch"] <= libraries.high
    assert context.low <= measured["non_torch_at_start"] <= context.high
    if "graphs" in measured:
        graphs = part(found, "CUDA graphs")
        assert graphs.low <= measured["graphs"] <= graphs.high
        assert graphs.beyond is (measured["graphs_estimate"] == 0)


def test_the_table_of_the_docs_is_this_one() -> None:
    written = DOCS.read_text(encoding="utf-8")
    assert [measured for measured in MEASURED["starts"] if row(measured) not in written] == []
