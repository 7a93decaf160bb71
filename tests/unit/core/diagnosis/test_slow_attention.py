"""A slower attention: told from the engine's log alone, with the command that changes it."""

from collections.abc import Mapping, Sequence

import pytest

from engine_host.core.diagnosis.slow_causes import causes_of
from engine_host.core.diagnosis.work import Measured, busy_of
from engine_host.protocol.bench.diagnosis import SlowCause, SlowReason
from engine_host.protocol.engines import Attention
from engine_host.protocol.host import Gpu
from engine_host.protocol.launch.plans import LaunchPlan, Layer, Setting
from tests.plan_samples import engine_of, plain_plan, vllm_plan

GPU = Gpu(index=0, uuid="GPU-x", name="RTX 3090", memory_total=2, memory_used=1)


def found(
    plan: LaunchPlan,
    attention: Attention | None,
    buffers: Mapping[str, int] | None = None,
    gpus: Sequence[Gpu] = (GPU,),
) -> SlowCause | None:
    engine = engine_of(plan, id="e", buffers=buffers or {}, attention=attention)
    measured = Measured({"engine.e.requests.running": [1.0] * 9}, 1.0, gpus)
    causes = list(causes_of(busy_of(engine, measured), measured))
    return next((one for one in causes if one.reason is SlowReason.ATTENTION_BACKEND), None)


def flags(*words: str) -> str:
    return "sndr run m " + " ".join(f"--set extra_arguments={word}" for word in words)


WHY = "--block-size 8 precluded higher-priority backend(s) FLASH_ATTN. Using TRITON_ATTN instead"
FA2 = "FA4 on Blackwell does not support head_size=192 due to TMEM, defaulting to FA version 2."


@pytest.mark.parametrize(
    ("attention", "command", "words", "helps"),
    [
        (
            Attention(backend="TRITON_ATTN", passed_over=("FLASH_ATTN",), why=WHY),
            flags("--block-size=8", "--seed=1"),
            "rules out FLASH_ATTN, which vLLM would have taken: TRITON_ATTN",
            "sndr run m --set extra_arguments=--seed=1",
        ),
        (
            Attention(backend="FLASHINFER", asked=True),
            flags("--seed", "1", "--attention-backend", "FLASHINFER"),
            "names the attention backend FLASHINFER",
            "sndr run m --set extra_arguments=--seed --set extra_arguments=1",
        ),
        (
            Attention(backend="CPU_ATTN", passed_over=("TRITON_ATTN",), asked=True),
            flags("--attention-backend=TRITON_ATTN"),
            "asks for the attention backend TRITON_ATTN, which does not run on a processor: CPU_ATTN",
            "sndr run m",
        ),
        (Attention(backend="FLASH_ATTN", why=FA2), "sndr run m", "FA4 on Blackwell", "sndr logs e"),
        (
            Attention(backend="TURBOQUANT", why="TurboQuant stays on vLLM's own kernels: head size 96."),
            "sndr run m",
            "not those of this program: head size 96.",
            "sndr prove",
        ),
        (
            Attention(backend="FLEX_ATTENTION"),
            "sndr run m --env VLLM_LOGGING_LEVEL=INFO --env A=b",
            "FLEX_ATTENTION computes attention",
            "sndr run m --env A=b --env VLLM_LOGGING_LEVEL=DEBUG",
        ),
    ],
)
def test_of_vllm(attention: Attention, command: str, words: str, helps: str) -> None:
    cause = found(vllm_plan(command=command), attention)
    assert cause is not None
    assert words in cause.sentence
    assert cause.fix is not None
    assert cause.fix.command == helps
    assert cause.share is None, "what it costs was not measured"
    assert not attention.why or cause.evidence["line"] == attention.why


def test_a_kv_type_that_may_be_the_reason_is_named() -> None:
    fp8 = Setting(name="kv_cache_dtype", value="fp8", layer=Layer.OVERRIDE)
    plan = vllm_plan(settings=(fp8,), command="sndr run 'my model' --set kv_cache_dtype=fp8 --keep")
    cause = found(plan, Attention(backend="TRITON_ATTN", others=("FLEX_ATTENTION",)))
    assert cause is not None
    assert cause.fix is not None
    assert cause.fix.command == "sndr run 'my model' --keep --set kv_cache_dtype=auto"
    assert cause.evidence == {"backend": "TRITON_ATTN", "would_work_too": "FLEX_ATTENTION"}


def test_the_usual_backends_are_no_cause() -> None:
    for backend in ("FLASH_ATTN", "FLASHINFER", "TURBOQUANT", "FLASHMLA", ""):
        assert found(vllm_plan(), Attention(backend=backend)) is None
    assert found(vllm_plan(), None) is None
    assert found(plain_plan(), None) is None
    assert found(plain_plan(), Attention(backend="flash attention")) is None


def test_flash_attention_that_was_switched_off() -> None:
    plan = plain_plan(command="sndr run m --set flash_attention=off --context 4096")
    cause = found(plan, Attention(backend="no flash attention", asked=True), gpus=())
    assert cause is not None
    assert cause.fix is not None
    assert cause.fix.command == "sndr run m --context 4096 --set flash_attention=auto"


def test_what_the_device_cannot_compute() -> None:
    lacks = Attention(backend="no flash attention", passed_over=("Flash Attention",), why="layer 0 is …")
    alike = found(plain_plan(), lacks)
    assert alike is not None
    assert "cannot compute on this device: Flash Attention" in alike.sentence
    assert alike.fix is not None
    assert alike.fix.command == "sndr engine list"
    unlike = tuple(
        Setting(name=name, value=value, layer=Layer.OVERRIDE)
        for name, value in (("kv_type_k", "q8_0"), ("kv_type_v", "q4_0"))
    )
    command = "sndr run m --set kv_type_k=q8_0 --set kv_type_v=q4_0"
    mixed = found(plain_plan(settings=unlike, command=command), lacks)
    assert mixed is not None
    assert mixed.fix is not None
    assert mixed.fix.command == "sndr run m --set kv_type_v=q8_0 --set kv_type_k=q8_0"


def test_vulkan_beside_an_nvidia_gpu() -> None:
    cause = found(plain_plan(), Attention(backend="flash attention"), {"Vulkan0 KV": 5})
    assert cause is not None
    assert cause.fix is not None
    assert cause.fix.command == "sndr engine compare"
    assert found(plain_plan(), None, {"Vulkan0 KV": 5}, gpus=()) is None, "a GPU of another maker"
