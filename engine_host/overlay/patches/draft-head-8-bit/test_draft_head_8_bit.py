"""vLLM's worker, the functions that share an output layer, and its LogitsProcessor over what results."""

import json
from typing import Any

import pytest

from tests.kernel_interpreter import interpreter_environment
from tests.overlay_engine import EngineRun, run_in_engine

ID = "draft-head-8-bit"
SCRIPT = """
import json, os, sys
from types import SimpleNamespace
import torch
from torch import nn

sys.path += os.environ["KERNELS"].split(os.pathsep)
import vllm.v1.worker.gpu.spec_decode.eagle.utils as newer
from contextlib import nullcontext
from vllm.config import VllmConfig
from vllm.model_executor.layers.logits_processor import LogitsProcessor
from vllm.model_executor.layers.linear import UnquantizedLinearMethod
from vllm.model_executor.layers.vocab_parallel_embedding import UnquantizedEmbeddingMethod
from vllm.v1.spec_decode.llm_base_proposer import SpecDecodeBaseProposer
from vllm.v1.worker.gpu_worker import Worker

VOCABULARY = 300
newer.get_draft_load_config = newer.get_pp_safe_draft_load_config = lambda config: None
newer.get_pp_group = lambda: SimpleNamespace(world_size=1)


class Output(nn.Module):
    def __init__(self, hidden, quantised, kind):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(VOCABULARY, hidden).bfloat16(), requires_grad=False)
        self.quant_method = SimpleNamespace() if quantised else kind()
        self.shard_indices, self.tp_size = "of the model", 1
        self.cpu_linear = nn.functional.linear


class Model(nn.Module):
    def __init__(self, own, hidden=256, quantised=False, linear=False):
        kind = UnquantizedLinearMethod if linear else UnquantizedEmbeddingMethod
        super().__init__()
        self.model = nn.Module()
        self.model.embed_tokens = nn.Embedding(4, 4)
        self.lm_head = Output(hidden, quantised, kind)
        self.has_own_lm_head = self.has_own_embed_tokens = own
        layer = nn.Module()
        layer.shared_head = nn.Module()
        layer.shared_head.head = Output(hidden, quantised, kind)
        self.model.layers = nn.ModuleDict({"0": layer})


class ForGraphs:
    # As vLLM's BreakableCUDAGraphWrapper: what it is asked, its model answers; what is set stays on it.
    def __init__(self, model):
        self.model_in_it = model

    def __getattr__(self, name):
        return getattr(self.model_in_it, name)

    def unwrap(self):
        return self.model_in_it


def given(runner, own=False, products="bfloat16", wrapped=False, dummy=False, **other):
    torch.manual_seed(0)
    target, draft = Model(True, **other), Model(own, **other)
    config = VllmConfig()
    config.model_config = SimpleNamespace(head_dtype=getattr(torch, products))
    sharing = SimpleNamespace(
        speculative_config=SimpleNamespace(
            draft_model_config=SimpleNamespace(hf_config=SimpleNamespace()),
            apply_draft_overrides=lambda config: config,
        ),
        load_config=None,
    )
    model_runner = SimpleNamespace(get_model=lambda: target, model_memory_usage=1000)

    def load_model(load_dummy_weights):
        # As both runners do it.
        if runner == "older":
            proposer = SimpleNamespace(model=draft, vllm_config=sharing, use_local_argmax_reduction=False)
            SpecDecodeBaseProposer._maybe_share_lm_head(proposer, target)
            proposer.model = ForGraphs(draft) if wrapped else draft
            model_runner.drafter = proposer
        elif runner == "newer":
            newer.get_model = lambda **given: draft
            model_runner.speculator = SimpleNamespace(model=newer.load_eagle_model(target, sharing))

    model_runner.load_model = load_model
    worker = SimpleNamespace(
        vllm_config=config, model_runner=model_runner,
        _maybe_get_memory_pool_context=lambda tag: nullcontext(),
        _scoped_allocator_max_split=lambda max_split_size_mb: nullcontext(),
    )
    Worker.load_model(worker, load_dummy_weights=dummy)
    return target, draft, model_runner.model_memory_usage


def looked_at(target, draft, memory):
    found = {"memory": memory, "draft's": type(draft.lm_head).__name__}
    found["model's"] = type(target.lm_head).__name__
    found["layer's"] = draft.model.layers["0"].shared_head.head is draft.lm_head
    return found


def compared(target, draft, memory):
    processor = LogitsProcessor.__new__(LogitsProcessor)
    nn.Module.__init__(processor)
    processor.head_dtype, processor.soft_cap, processor.scale = torch.bfloat16, None, 1.0
    processor.logits_as_input, processor.org_vocab_size = False, VOCABULARY - 12
    processor._gather_logits = lambda logits: logits
    bias = torch.randn(VOCABULARY).bfloat16()
    errors, same = [], 0
    for rows in (1, 5, 64, 65):
        x = torch.randn(rows, 256).bfloat16()
        wanted = processor(target.lm_head, x, bias).double()
        logits = processor(draft.lm_head, x, bias)
        assert logits.dtype == torch.bfloat16 and logits.shape == (rows, VOCABULARY - 12)
        errors.append(float((logits.double() - wanted).norm() / wanted.norm()))
        same += int((logits.argmax(1) == wanted.argmax(1)).sum())
    return {
        "errors": errors,
        "same": same,
        "shard_indices": draft.lm_head.shard_indices,
        "parameters": [name for name, _ in draft.lm_head.named_parameters()],
    }


found = []
for case in json.loads(sys.argv[1]):
    models = given(**case)
    found.append(looked_at(*models))
    if found[-1]["draft's"] == "DraftHead":
        found[-1] |= compared(*models)
print(json.dumps(found))
"""
STOCK = {"draft's": "Output", "model's": "Output", "layer's": True, "memory": 1000}


def shared(*cases: dict[str, Any], script: str = SCRIPT, patched: bool = True) -> EngineRun:
    kernels = interpreter_environment()["PYTHONPATH"]
    return run_in_engine(
        script,
        [ID] if patched else (),
        environment={"KERNELS": kernels, "TRITON_INTERPRET": "1"},
        arguments=[json.dumps(cases)],
    )


def test_without_the_patch_drafts_read_sixteen_bits() -> None:
    stock = shared({"runner": "older"}, {"runner": "newer"}, patched=False)
    assert stock.answer == [STOCK, STOCK], "the symptom"


def test_without_drafts_nothing_changes() -> None:
    made = shared({"runner": "none"})
    assert made.answer == [STOCK | {"layer's": False}]


@pytest.mark.parametrize("runner", ["older", "newer"])
def test_drafts_are_chosen_by_a_copy_and_tokens_by_the_model(runner: str) -> None:
    cannot: dict[str, dict[str, Any]] = {
        "it is quantised, or wrapped": {"quantised": True},
        "its numbers are torch.bfloat16, its products torch.float32": {"products": "float32"},
        "200 columns are no multiple of 128": {"hidden": 200},
    }
    also = [{"wrapped": True}, {"linear": True}]
    stays = [{"own": True}, {"dummy": True}]
    cases = [{}, *also, *stays, *cannot.values()]
    made = shared(*({"runner": runner} | case for case in cases))
    assert made.outcome(ID) == "applied", made.stderr
    log = made.stdout + made.stderr
    first, *others = made.answer

    copied = 300 * 256 + 300 * 4
    assert {name: first[name] for name in STOCK} == STOCK | {"draft's": "DraftHead", "memory": 1000 + copied}
    *few, many = first["errors"]
    assert all(0 < error < 0.015 for error in few)
    assert many == 0.0, "more rows than pay take the model's own matrix"
    assert first["same"] >= 130, "of 135 first choices"
    assert first["shard_indices"] == "of the model"
    assert first["parameters"] == [], "the model's own weights are not the drafts' a second time"

    wrapped, linear, own, dummy, *others = others
    assert (wrapped["draft's"], linear["draft's"]) == ("DraftHead", "DraftHead")
    assert own["draft's"] == "Output", "what a draft model brings itself stays"
    assert dummy == STOCK, "the real weights come later"
    assert others == [STOCK] * len(cannot)
    for why in cannot:
        assert f"Drafts are chosen by the model's output matrix as it is: {why}." in log
    assert log.count("output matrix") == len(cannot)


def test_what_the_self_test_finds_wrong_is_not_used() -> None:
    broken = """
from sndr_overlay_patches.draft_head_8_bit import head
real = head.product
head.product = lambda *given: real(*given) * float("nan")
found = []
"""
    made = shared({"runner": "newer"}, script=SCRIPT.replace("\nfound = []\n", broken))
    assert made.answer == [STOCK]
    assert "as it is: the self-test is off by nan." in made.stdout + made.stderr
