"""Rules about starts that work badly though they fit; each has an id and what shows it.

Sources: measurements of this project (vllm.md, gpu/README.md) and figures that users of vLLM and llama.cpp
published (club-3090's cliffs, Genesis patches, issues of vLLM); `evidence` names the one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from engine_host.fit.estimate import Estimate, beyond_training, blocker, estimate, holds
from engine_host.fit.kv import TURBOQUANT
from engine_host.fit.shapes.model import Layer
from engine_host.fit.start import Model, Start
from engine_host.fit.vllm import keeps_states, pool, share
from engine_host.protocol.base import Severity
from engine_host.protocol.launch.fit import Advice
from engine_host.protocol.launch.plans import EngineKind

_GIB = 2**30
_COARSE = {
    "q4_0": "tail precision 88.9 of 100 against 94.3 with q8_0",
    "q4_1": "tail precision near that of q4_0, 88.9 of 100",
    "iq4_nl": "tail precision near that of q4_0, 88.9 of 100",
    "turboquant_4bit_nc": "perplexity 2.7 % higher, by vLLM's own figures",
    "turboquant_k3v4_nc": "perplexity 10.6 % higher, by vLLM's own figures",
    "turboquant_3bit_nc": "perplexity 20.6 % higher, by vLLM's own figures",
}


@dataclass(frozen=True, slots=True)
class AdviceInput:
    """The input of the rules; `min_p` is that of the sampler that will be used, None if not set."""

    model: Model
    start: Start
    found: Estimate
    min_p: float | None = None
    # Drafting layers that the config speaks of.
    drafting_requested: bool = False

    @property
    def vllm(self) -> bool:
        """True if vLLM runs it on GPUs."""
        return self.start.engine is EngineKind.VLLM and not self.start.cpu

    @property
    def gated_delta(self) -> bool:
        """True if the model is a hybrid with gated-delta layers."""
        return self.model.shape.gated_delta is not None

    @property
    def oldest(self) -> float:
        """The lowest compute capability of the GPUs; 99 where it is not known."""
        return min((float(device.sm) for device in self.start.devices if device.sm), default=99.0)


def advice(facts: AdviceInput) -> tuple[Advice, ...]:
    """The rules that apply, the gravest first."""
    order = [Severity.ERROR, Severity.WARNING, Severity.INFO]
    found = [one for rule in _RULES for one in rule(facts)]
    return tuple(sorted(found, key=lambda one: order.index(one.severity)))


def _advice(rule: str, severity: Severity, message: str, fix: str, evidence: str) -> Advice:
    return Advice(id=rule, severity=severity, message=message, fix=fix, evidence=evidence)


def _tool_result(s: AdviceInput) -> Iterator[Advice]:
    if s.vllm and s.start.kv in TURBOQUANT and len(s.start.devices) == 1 and s.start.context > 49_152:
        yield _advice(
            "cliff.tool_result",
            Severity.WARNING,
            "A tool result of 25,000 tokens or more can end the engine: attention's scratch is sized by the "
            "longest context.",
            "Keep the context at 48K, take fp8, or share the model over two GPUs.",
            "single 24 GB cards with TurboQuant; 138 MiB were missing at 192K",
        )


def _gdn_prefill(s: AdviceInput) -> Iterator[Advice]:
    if not (s.vllm and s.gated_delta):
        return
    small = len(s.start.devices) == 1 and s.start.devices[0].total < 26 * _GIB
    if small and s.start.context > 50_000:
        yield _advice(
            "cliff.gdn_long_prompt",
            Severity.WARNING,
            "One prompt above 50,000 tokens, or a conversation that has grown past about 21,000, can run out "
            "of memory on this card.",
            "Use two GPUs, or llama.cpp for long conversations.",
            "gated-delta prefill keeps about 500 MiB live at 4,128 tokens; reported from single 24 GB cards",
        )
    scan = next((part for part in s.found.parts if part.name == "gated-delta prefill"), None)
    if scan is None or s.start.cpu or s.start.kv_cache is not None:
        return
    # The KV cache fills vLLM's share to its end, so that only what lies beyond it is left for a prefill.
    beyond = sum(part.bytes for part in s.found.parts if part.beyond)
    free = min(device.free - share(device, s.start) - beyond for device in s.start.devices)
    if free < scan.high - scan.bytes:
        yield _advice(
            "gdn_prefill_oom",
            Severity.WARNING,
            "Beyond vLLM's share of the GPU less is free than the prefill of gated-delta layers may take.",
            "Read prompts in smaller chunks (batched_tokens), or give vLLM a smaller share (gpu_memory).",
            "vLLM #54775 and #52871: its memory profile warms up with 64 tokens only",
        )


def _reprefill(s: AdviceInput) -> Iterator[Advice]:
    # Where it drafts the overlay keeps every block's states, or there is no prefix that is found again.
    densely_kept = s.start.drafting
    if s.vllm and s.gated_delta and s.start.prefix_caching and s.start.context > 20_000 and not densely_kept:
        yield _advice(
            "cliff.reprefill",
            Severity.INFO,
            "Long conversations with this hybrid get slow to begin: a prefix that is found again still has "
            "its states computed anew.",
            "Measure the time to the first token at the depth that you use.",
            "5.6 s at 1.2K tokens, 202 s at 21.8K, reported from a 24 GB laptop card",
        )


def _false_ceiling(s: AdviceInput) -> Iterator[Advice]:
    if s.start.engine is EngineKind.LLAMA_CPP and not s.start.cpu and s.start.context > 200_000:
        yield _advice(
            "cliff.false_ceiling",
            Severity.WARNING,
            "It may start with this context and run out of memory halfway: scratch grows beyond what was "
            "reserved.",
            "Take 200,000 tokens, and try it filled before you rely on it.",
            "+7.9 MB for each 1,000 tokens beyond the reserve, reported at 262K",
        )


def _context_beyond_training(s: AdviceInput) -> Iterator[Advice]:
    if beyond_training(s.model, s.start):
        yield _advice(
            "context_beyond_training",
            Severity.WARNING,
            f"The model was trained for {s.model.context:,} tokens, and llama.cpp gives a stream no more.",
            f"Take a context of {s.model.context:,} tokens or less: the rest is memory for nothing.",
            "the model's own metadata; llama.cpp caps the context of a slot at it",
        )


def _drafter_missing(s: AdviceInput) -> Iterator[Advice]:
    if s.drafting_requested and not s.model.shape.mtp_layers and not s.model.drafter:
        yield _advice(
            "drafter_missing",
            Severity.ERROR,
            "Speculation is asked for, but this model's files hold no drafting layers.",
            "Take weights with the MTP layers, or switch speculation off.",
            "without a drafter vLLM fell back silently: 25 instead of 125 tok/s",
        )


def _mtp_slows(s: AdviceInput) -> Iterator[Advice]:
    if s.vllm and s.start.drafting and s.model.shape.experts is not None and len(s.start.devices) > 1:
        yield _advice(
            "mtp_slows",
            Severity.WARNING,
            "Drafting slowed a mixture of experts on several GPUs down on some machines, and sped it up on "
            "others.",
            "Measure it with speculation off, too.",
            "35B-A3B on 2 GPUs: 178 to 90 tok/s (fp8, 2 x 3090), but 157 to 240 (k8v4, 2 x A5000)",
        )


def _min_p(s: AdviceInput) -> Iterator[Advice]:
    if s.min_p:
        yield _advice(
            "min_p",
            Severity.WARNING,
            "A min_p above 0 makes reasoning models repeat themselves.",
            "Set min_p to 0.",
            "the repetition trap, reported from Qwen3.6",
        )


def _finer(s: AdviceInput) -> str:
    """Suggest the finer KV types of this engine that fit, the coarsest of them last."""
    kinds = ("f16", "q8_0") if s.start.engine is EngineKind.LLAMA_CPP else ("auto", "fp8", "turboquant_k8v4")
    fitting = []
    for kind in kinds:
        other = replace(s.start, kv=kind, kv_v=kind)
        if blocker(s.model, other) is None and holds(estimate(s.model, other)):
            fitting.append(kind)
    if fitting:
        return f"Take {' or '.join(fitting)}, which fits here; keys suffer more than values."
    return f"A finer type ({' or '.join(kinds)}) has room with a shorter context or fewer streams."


def _kv_coarse(s: AdviceInput) -> Iterator[Advice]:
    if shown := _COARSE.get(s.start.kv):
        yield _advice(
            "kv_coarse",
            Severity.WARNING,
            f"A KV cache of {s.start.kv} loses quality that searching a long text does not show.",
            _finer(s),
            shown,
        )
    if s.vllm and s.start.kv == "turboquant_k8v4" and s.oldest < 8.9:
        yield _advice(
            "k8v4_keys_clamped",
            Severity.WARNING,
            "On these GPUs the keys of k8v4 are clamped at 1.75.",
            "Leave the patch for it on.",
            "below compute capability 8.9 the kernel stores e4b15: error 0.25 instead of 0.13",
        )


def _prefix_cache(s: AdviceInput) -> Iterator[Advice]:
    # With drafts and one of the types measured the overlay keeps states densely, or switches it off.
    if s.vllm and s.gated_delta and s.start.prefix_caching and s.start.kv in TURBOQUANT:
        yield _advice(
            "prefix_cache_hybrid",
            Severity.WARNING,
            "Prefix caching with TurboQuant slows a hybrid; with drafts, k8v4 alone keeps it at the start.",
            "Take an fp8 cache where conversations are long, or switch prefix caching off and compare.",
            "-28.8 % with TurboQuant (Genesis hardware notes); vLLM #53912, #47194, #45238",
        )


def _kept_states(s: AdviceInput) -> Iterator[Advice]:
    if not (s.vllm and s.gated_delta and keeps_states(s.model, s.start)):
        return
    blocks = pool(s.model, s.start)
    each = sum(group.count for group in blocks.groups)
    tokens = blocks.blocks(s.found.kv_budget) // each * blocks.block_tokens
    yield _advice(
        "prefix_states",
        Severity.INFO,
        f"Prefixes that stay for their next turn hold their states too: at most {tokens:,} tokens of them, "
        f"since {blocks.block_tokens:,} take {each} blocks.",
        "A smaller type of the KV cache keeps more of them: its blocks are longer.",
        "counted by layer; hybrid-speculation-prefix-cache keeps the states of every block",
    )


def _eager(s: AdviceInput) -> Iterator[Advice]:
    if s.vllm and s.start.eager:
        yield _advice(
            "eager",
            Severity.WARNING,
            "Without CUDA graphs and compiled code decoding is much slower.",
            "Use eager mode to look for faults, not to work.",
            "vLLM 0.32, tiny model: 225 instead of 310 tok/s even on a processor",
        )


def _bus(s: AdviceInput) -> Iterator[Advice]:
    lanes = [device.pcie_lanes for device in s.start.devices if device.pcie_lanes]
    if len(s.start.devices) > 1 and lanes and min(lanes) <= 4:
        yield _advice(
            "pcie_x4",
            Severity.WARNING,
            f"A GPU is attached with {min(lanes)} PCIe lanes; sharing layers sends every step's values over "
            "them.",
            "Move it to a slot with more lanes, or use llama.cpp, which sends them once for each GPU.",
            "the driver's own count of lanes",
        )


def _power(s: AdviceInput) -> Iterator[Advice]:
    shares = [device.power_share for device in s.start.devices if device.power_share]
    if shares and min(shares) < 0.75:
        yield _advice(
            "power_cap",
            Severity.INFO,
            f"A GPU is limited to {min(shares):.0%} of its power; reading prompts gets slower first.",
            "Raise the limit for long prompts; decoding hardly needs it.",
            "2 x 3090 at 230 W: 67.8 instead of 69 tok/s",
        )


def _format(s: AdviceInput) -> Iterator[Advice]:
    if "nvfp4" in s.model.quantization.lower() and s.oldest < 10:
        yield _advice(
            "nvfp4_needs_blackwell",
            Severity.WARNING,
            "These GPUs have no NVFP4 arithmetic.",
            "Take AWQ or FP8 weights of the model.",
            "AWQ, not NVFP4, on L4 (compute capability 8.9)",
        )
    if s.start.engine is EngineKind.VLLM and s.start.cpu:
        yield _advice(
            "vllm_on_cpu",
            Severity.INFO,
            "On a processor llama.cpp is the faster engine.",
            "Take a GGUF file of the model.",
            "445M weights: 11.8 against 56 tok/s on the same two cores",
        )


def _memory_in_use(s: AdviceInput) -> Iterator[Advice]:
    if not s.vllm:
        return
    short = [d for d in s.start.devices if d.free < d.total * s.start.gpu_memory]
    if short:
        share = min(d.free / d.total for d in short)
        yield _advice(
            "gpu_share_taken",
            Severity.WARNING,
            f"Other programs leave {share:.0%} of {short[0].name}; vLLM does not start with a larger share.",
            f"Set gpu_memory to {max(share - 0.02, 0.01):.2f}, or end the others.",
            "vLLM checks its share against what is free when it starts",
        )


def _windows(s: AdviceInput) -> Iterator[Advice]:
    if s.vllm and s.model.shape.count(Layer.SLIDING) and s.start.kv.startswith("fp8"):
        yield _advice(
            "fp8_with_windows",
            Severity.INFO,
            "Layers with a window keep little; the gain of an fp8 cache is that of the others alone.",
            "Compare the KV types below.",
            "counted by layer",
        )


_RULES: tuple[Callable[[AdviceInput], Iterator[Advice]], ...] = (
    _tool_result,
    _gdn_prefill,
    _reprefill,
    _false_ceiling,
    _context_beyond_training,
    _drafter_missing,
    _mtp_slows,
    _min_p,
    _kv_coarse,
    _prefix_cache,
    _kept_states,
    _eager,
    _bus,
    _power,
    _format,
    _memory_in_use,
    _windows,
)
