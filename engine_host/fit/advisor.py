"""Rules about starts that work badly though they fit; each has an id and what shows it.

Sources: measurements of this project (vllm.md, gpu/README.md) and figures that users of vLLM and llama.cpp
published (club-3090's cliffs, Genesis patches, issues of vLLM); `evidence` names the one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from engine_host.core.sizes import size_text
from engine_host.fit.estimate import Estimate, beyond_training, blocker, estimate, holds
from engine_host.fit.kv import TURBOQUANT
from engine_host.fit.reserve import DESKTOP, left_of
from engine_host.fit.shapes.model import Layer
from engine_host.fit.start import Model, Start
from engine_host.fit.vllm import keeps_states, pool, share
from engine_host.protocol.base import Severity
from engine_host.protocol.language import tr
from engine_host.protocol.launch.fit import Advice, Verdict
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
    # The GPUs were named, so that what a desktop holds of them is not seen.
    named: bool = False

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
            tr(
                "A tool result of 25,000 tokens or more can end the engine: attention's scratch is "
                "sized by the longest context."
            ),
            tr("Keep the context at 48K, take fp8, or share the model over two GPUs."),
            tr("single 24 GB cards with TurboQuant; 138 MiB were missing at 192K"),
        )


def _gdn_prefill(s: AdviceInput) -> Iterator[Advice]:
    if not (s.vllm and s.gated_delta):
        return
    small = len(s.start.devices) == 1 and s.start.devices[0].total < 26 * _GIB
    if small and s.start.context > 50_000:
        yield _advice(
            "cliff.gdn_long_prompt",
            Severity.WARNING,
            tr(
                "One prompt above 50,000 tokens, or a conversation that has grown past about 21,000, "
                "can run out of memory on this card."
            ),
            tr("Use two GPUs, or llama.cpp for long conversations."),
            tr(
                "gated-delta prefill keeps about 500 MiB live at 4,128 tokens; reported from single "
                "24 GB cards"
            ),
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
            tr(
                "Beyond vLLM's share of the GPU less is free than the prefill of gated-delta layers may take."
            ),
            tr("Take smaller prefill chunks (batched_tokens), or give vLLM a smaller share (gpu_memory)."),
            tr("vLLM #54775 and #52871: its memory profile warms up with 64 tokens only"),
        )


def _reprefill(s: AdviceInput) -> Iterator[Advice]:
    # Where it drafts the overlay keeps every block's states, or there is no prefix that is found again.
    densely_kept = s.start.drafting
    if s.vllm and s.gated_delta and s.start.prefix_caching and s.start.context > 20_000 and not densely_kept:
        yield _advice(
            "cliff.reprefill",
            Severity.INFO,
            tr(
                "Long conversations with this hybrid get slow to begin: a prefix that is found again "
                "still has its states computed anew."
            ),
            tr("Measure the time to the first token at the depth that you use."),
            tr("5.6 s at 1.2K tokens, 202 s at 21.8K, reported from a 24 GB laptop card"),
        )


def _false_ceiling(s: AdviceInput) -> Iterator[Advice]:
    if s.start.engine is EngineKind.LLAMA_CPP and not s.start.cpu and s.start.context > 200_000:
        yield _advice(
            "cliff.false_ceiling",
            Severity.WARNING,
            tr(
                "It may start with this context and run out of memory halfway: scratch grows beyond "
                "what was reserved."
            ),
            tr("Take 200,000 tokens, and try it filled before you rely on it."),
            tr("+7.9 MB for each 1,000 tokens beyond the reserve, reported at 262K"),
        )


def _context_beyond_training(s: AdviceInput) -> Iterator[Advice]:
    if beyond_training(s.model, s.start):
        yield _advice(
            "context_beyond_training",
            Severity.WARNING,
            tr(
                "The model was trained for {context:,} tokens, and llama.cpp gives a stream no more.",
                context=s.model.context,
            ),
            tr(
                "Take a context of {context:,} tokens or less: the rest is memory for nothing.",
                context=s.model.context,
            ),
            tr("the model's own metadata; llama.cpp caps the context of a slot at it"),
        )
        yield stretched(s.start)


def stretched(start: Start) -> Advice:
    """Tell that positions can be stretched, and what that costs, where more are asked for than trained."""
    if start.engine is EngineKind.VLLM:
        how = tr("--set extra_arguments='--hf-overrides …' with the rope parameters of the model's card")
    else:
        how = tr(
            "--rope-scaling yarn with --rope-scale and --yarn-orig-ctx as its card says, and --override-kv "
            "for the length that the file tells, at which the server caps a stream"
        )
    return _advice(
        "yarn",
        Severity.WARNING,
        tr("YaRN stretches the positions of some models beyond what they were trained for."),
        tr(
            "Only where its publisher says so, and for long texts alone, as short ones get worse: {how}.",
            how=how,
        ),
        tr("the cards of Qwen3: 32,768 tokens, 131,072 with YaRN, and a warning about short texts"),
    )


def _drafter_missing(s: AdviceInput) -> Iterator[Advice]:
    if s.drafting_requested and not s.model.shape.mtp_layers and not s.model.drafter:
        yield _advice(
            "drafter_missing",
            Severity.ERROR,
            tr("Speculation is asked for, but this model's files hold no drafting layers."),
            tr("Take weights with the MTP layers, or switch speculation off."),
            tr("without a drafter vLLM fell back silently: 25 instead of 125 tok/s"),
        )


def _mtp_slows(s: AdviceInput) -> Iterator[Advice]:
    if s.vllm and s.start.drafting and s.model.shape.experts is not None and len(s.start.devices) > 1:
        yield _advice(
            "mtp_slows",
            Severity.WARNING,
            tr(
                "Drafting slowed a mixture of experts on several GPUs down on some machines, and "
                "sped it up on others."
            ),
            tr("Measure it with speculation off, too."),
            tr("35B-A3B on 2 GPUs: 178 to 90 tok/s (fp8, 2 x 3090), but 157 to 240 (k8v4, 2 x A5000)"),
        )


def _min_p(s: AdviceInput) -> Iterator[Advice]:
    if s.min_p:
        yield _advice(
            "min_p",
            Severity.WARNING,
            tr("A min_p above 0 makes reasoning models repeat themselves."),
            tr("Set min_p to 0."),
            tr("the repetition trap, reported from Qwen3.6"),
        )


def _finer(s: AdviceInput) -> str:
    """Suggest the finer KV types of this engine that fit, the coarsest of them last."""
    kinds = ("f16", "q8_0") if s.start.engine is EngineKind.LLAMA_CPP else ("auto", "fp8", "turboquant_k8v4")
    fitting = []
    for kind in kinds:
        other = replace(s.start, kv=kind, kv_v=kind)
        if blocker(s.model, other) is None and estimate(s.model, other).verdict is Verdict.FITS:
            fitting.append(kind)
    if fitting:
        return tr(
            "Take {fitting}, which fits here; keys suffer more than values.", fitting=" or ".join(fitting)
        )
    return tr(
        "A finer type ({kinds}) has room with a shorter context or fewer streams.", kinds=" or ".join(kinds)
    )


def _kv_coarse(s: AdviceInput) -> Iterator[Advice]:
    if shown := _COARSE.get(s.start.kv):
        yield _advice(
            "kv_coarse",
            Severity.WARNING,
            tr("A KV cache of {kv} loses quality that searching a long text does not show.", kv=s.start.kv),
            _finer(s),
            shown,
        )
    if s.vllm and s.start.kv == "turboquant_k8v4" and s.oldest < 8.9:
        yield _advice(
            "k8v4_keys_clamped",
            Severity.WARNING,
            tr("On these GPUs the keys of k8v4 are clamped at 1.75."),
            tr("Leave the patch for it on."),
            tr("below compute capability 8.9 the kernel stores e4b15: error 0.25 instead of 0.13"),
        )


def _prefix_cache(s: AdviceInput) -> Iterator[Advice]:
    # With drafts and one of the types measured the overlay keeps states densely, or switches it off.
    if s.vllm and s.gated_delta and s.start.prefix_caching and s.start.kv in TURBOQUANT:
        yield _advice(
            "prefix_cache_hybrid",
            Severity.WARNING,
            tr(
                "Prefix caching with TurboQuant slows a hybrid; with drafts, k8v4 and 4bit_nc keep it "
                "at the start."
            ),
            tr("Take an fp8 cache where conversations are long, or switch prefix caching off and compare."),
            tr("-28.8 % with TurboQuant (Genesis hardware notes); vLLM #53912, #47194, #45238"),
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
        tr(
            "Prefixes that stay for their next turn hold their states too: at most {tokens:,} tokens "
            "of them, since {block_tokens:,} take {each} blocks.",
            tokens=tokens,
            block_tokens=blocks.block_tokens,
            each=each,
        ),
        tr("A smaller type of the KV cache keeps more of them: its blocks are longer."),
        tr("counted by layer; hybrid-speculation-prefix-cache keeps the states of every block"),
    )


def _eager(s: AdviceInput) -> Iterator[Advice]:
    if s.vllm and s.start.eager:
        yield _advice(
            "eager",
            Severity.WARNING,
            tr("Without CUDA graphs and compiled code decoding is much slower."),
            tr("Use eager mode to look for faults, not to work."),
            tr("vLLM 0.32, tiny model: 225 instead of 310 tok/s even on a processor"),
        )


def _bus(s: AdviceInput) -> Iterator[Advice]:
    lanes = [device.pcie_lanes for device in s.start.devices if device.pcie_lanes]
    if len(s.start.devices) > 1 and lanes and min(lanes) <= 4:
        yield _advice(
            "pcie_x4",
            Severity.WARNING,
            tr(
                "A GPU is attached with {lanes} PCIe lanes; sharing layers sends every step's values "
                "over them.",
                lanes=min(lanes),
            ),
            tr("Move it to a slot with more lanes, or use llama.cpp, which sends them once for each GPU."),
            tr("the driver's own count of lanes"),
        )


def _power(s: AdviceInput) -> Iterator[Advice]:
    shares = [device.power_share for device in s.start.devices if device.power_share]
    if shares and min(shares) < 0.75:
        yield _advice(
            "power_cap",
            Severity.INFO,
            tr(
                "A GPU is limited to {shares:.0%} of its power; prefill gets slower first.",
                shares=min(shares),
            ),
            tr("Raise the limit for long prompts; decoding hardly needs it."),
            tr("2 x 3090 at 230 W: 67.8 instead of 69 tok/s"),
        )


def _format(s: AdviceInput) -> Iterator[Advice]:
    if "nvfp4" in s.model.quantization.lower() and s.oldest < 10:
        yield _advice(
            "nvfp4_needs_blackwell",
            Severity.WARNING,
            tr("These GPUs have no NVFP4 arithmetic."),
            tr("Take AWQ or FP8 weights of the model."),
            tr("AWQ, not NVFP4, on L4 (compute capability 8.9)"),
        )
    if s.start.engine is EngineKind.VLLM and s.start.cpu:
        yield _advice(
            "vllm_on_cpu",
            Severity.INFO,
            tr("On a processor llama.cpp is the faster engine."),
            tr("Take a GGUF file of the model."),
            tr("445M weights: 11.8 against 56 tok/s on the same two cores"),
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
            tr(
                "Other programs leave {share:.0%} of {short}; vLLM does not start with a larger share.",
                share=share,
                short=short[0].name,
            ),
            tr("Set gpu_memory to {value:.2f}, or end the others.", value=max(share - 0.02, 0.01)),
            tr("vLLM checks its share against what is free when it starts"),
        )


def _display(s: AdviceInput) -> Iterator[Advice]:
    if not s.named or s.start.cpu or any(device.taken for device in s.start.devices) or not holds(s.found):
        return
    left = left_of(s.start, s.found)
    if left < DESKTOP:
        yield _advice(
            "display_share",
            Severity.WARNING,
            tr(
                "Nothing is counted for a display: a desktop takes about {desktop} of the card that drives "
                "it, and {left} are left.",
                desktop=size_text(DESKTOP),
                left=size_text(max(left, 0)),
            ),
            tr("Count it with --taken 1, attach the display elsewhere, or take a shorter context."),
            tr("a desktop with a browser, 0.5 to 1.5 GiB; nvidia-smi shows yours"),
        )


def _windows(s: AdviceInput) -> Iterator[Advice]:
    if s.vllm and s.model.shape.count(Layer.SLIDING) and s.start.kv.startswith("fp8"):
        yield _advice(
            "fp8_with_windows",
            Severity.INFO,
            tr("Layers with a window keep little; the gain of an fp8 cache is that of the others alone."),
            tr("Compare the KV types below."),
            tr("counted by layer"),
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
    _display,
    _windows,
)
