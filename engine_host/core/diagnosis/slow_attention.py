"""Judge from what an engine's log told whether attention is computed in a slower way than it could be."""

from collections.abc import Iterator

from engine_host.core.diagnosis.changed_start import with_setting, with_variable, without_argument
from engine_host.core.diagnosis.work import Busy, Measured
from engine_host.protocol.bench.diagnosis import SlowCause, SlowReason
from engine_host.protocol.engines import Attention, Engine
from engine_host.protocol.errors import Fix
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import EngineKind

# vLLM 0.32 takes these only where neither FlashAttention nor FlashInfer can be used (platforms/cuda.py).
_LAST_RESORTS = ("TRITON_ATTN", "FLEX_ATTENTION")
_TURBOQUANT = "TurboQuant stays on vLLM's own kernels: "
_PLAIN = "no flash attention"
_BLOCK_SIZE, _BACKEND = "--block-size", "--attention-backend"


def attention_causes(busy: Busy, measured: Measured) -> Iterator[SlowCause]:
    """Return what is not as good as it could be; what it costs was not measured, and is not said."""
    engine, told = busy.engine, busy.engine.attention
    if told is not None and engine.engine == EngineKind.VLLM.value:
        found = _of_vllm(engine, told)
    elif told is not None:
        found = _of_llamacpp(engine, told)
    else:
        found = None
    if found is None and measured.gpus and any(name.startswith("Vulkan") for name in engine.buffers):
        found = (
            tr("It computes over Vulkan on an NVIDIA GPU, not with CUDA."),
            Fix(text="Measure it beside a server that was built for CUDA.", command="sndr engine compare"),
        )
    if found is not None:
        sentence, fix = found
        yield SlowCause(
            reason=SlowReason.ATTENTION_BACKEND,
            engine=engine.name,
            sentence=sentence,
            evidence=_evidence(told),
            fix=fix,
        )


def _of_vllm(engine: Engine, told: Attention) -> tuple[str, Fix] | None:
    command, backend = engine.plan.command, told.backend
    if told.asked and told.passed_over:
        asked = told.passed_over[0]
        return (
            tr(
                "Its start asks for the attention backend {asked}, which does not run on a processor: "
                "{backend} computes instead.",
                asked=asked,
                backend=backend,
            ),
            Fix(
                text="Start it without that argument.",
                command=without_argument(command, _BACKEND),
            ),
        )
    if told.asked:
        return (
            tr(
                "Its start names the attention backend {backend}; vLLM did not choose by itself.",
                backend=backend,
            ),
            Fix(
                text="Start it without that argument, and compare.",
                command=without_argument(command, _BACKEND) or f"sndr logs {engine.id}",
            ),
        )
    if told.passed_over:
        return (
            tr(
                "Its block size rules out {better}, which vLLM would have taken: {backend} computes "
                "attention.",
                better=", ".join(told.passed_over),
                backend=backend or tr("another one"),
            ),
            Fix(
                text="Start it without a block size.",
                command=without_argument(command, _BLOCK_SIZE) or f"sndr logs {engine.id}",
            ),
        )
    if told.why.startswith(_TURBOQUANT):
        return (
            tr(
                "vLLM's own kernels read its TurboQuant cache, not those of this program: {why}",
                why=told.why.removeprefix(_TURBOQUANT),
            ),
            Fix(text="Test the kernels on this GPU.", command="sndr prove"),
        )
    if told.why:
        return (
            tr("Attention is computed by an older FlashAttention than this GPU can run: {why}", why=told.why),
            Fix(text="Start it without what that line names.", command=f"sndr logs {engine.id}"),
        )
    if backend not in _LAST_RESORTS:
        return None
    sentence = tr(
        "{backend} computes attention, which vLLM takes where neither FlashAttention nor FlashInfer can be "
        "used.",
        backend=backend,
    )
    settings = {one.name: one.value for one in engine.plan.settings}
    if settings.get("kv_cache_dtype", "auto") != "auto":
        return sentence, Fix(
            text="Its KV type may be the reason: try it with the type of the weights.",
            command=with_setting(command, "kv_cache_dtype", "auto"),
        )
    return sentence, Fix(
        text="Start it with this, and its log says why each better one was left out.",
        command=with_variable(command, "VLLM_LOGGING_LEVEL", "DEBUG"),
    )


def _of_llamacpp(engine: Engine, told: Attention) -> tuple[str, Fix] | None:
    command = engine.plan.command
    if told.backend == _PLAIN and told.asked:
        return (
            tr(
                "It was started without flash attention: the attention scores of each token are written to "
                "memory and read again."
            ),
            Fix(
                text="Let the server decide.",
                command=with_setting(command, "flash_attention", "auto"),
            ),
        )
    if not told.passed_over:
        return None
    settings = {one.name: one.value for one in engine.plan.settings}
    keys, values = settings.get("kv_type_k"), settings.get("kv_type_v")
    sentence = tr(
        "The server cannot compute on this device: {missing}. It does without.",
        missing=", ".join(told.passed_over),
    )
    if keys != values:
        return sentence, Fix(
            text="Give keys and values of the KV cache the same type: most servers know flash attention for "
            "that alone.",
            command=with_setting(with_setting(command, "kv_type_v", str(keys)), "kv_type_k", str(keys)),
        )
    return sentence, Fix(text="Choose another server, and compare.", command="sndr engine list")


def _evidence(told: Attention | None) -> dict[str, float | str]:
    if told is None:
        return {"backend": "Vulkan"}
    known = {
        "backend": told.backend,
        "passed_over": ", ".join(told.passed_over),
        "would_work_too": ", ".join(told.others),
        "line": told.why,
    }
    return {name: value for name, value in known.items() if value}
