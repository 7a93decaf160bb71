"""vLLM's command line and environment."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.engines.vllm.command import (
    Additions,
    VllmStart,
    command,
    owned_flags,
    serve,
    speculation_method,
)
from engine_host.protocol.errors import Reason

PYTHON = Path("/venv/bin/python")
SOCKET = Path("/run/plan.sock")
CACHE = Path("/cache/vllm")


def settings(*, tokenizer: bool = True, devices: Mapping[str, str] = {}, **values: object) -> VllmStart:
    """A small start with these settings."""
    return VllmStart("/models/m", "m", {"context": 2048, "streams": 4, **values}, tokenizer, devices)


def build(
    chosen: VllmStart, build: str = "cuda", additions: Additions | None = None
) -> tuple[list[str], dict[str, str]]:
    """The command of these settings."""
    argv, environment = command(chosen, PYTHON, build, SOCKET, CACHE, additions or Additions())
    return list(argv), environment


def value(argv: list[str], flag: str) -> str:
    """Return the argument after a flag."""
    return argv[argv.index(flag) + 1]


def test_the_least_command() -> None:
    argv, environment = build(settings())
    assert argv[:5] == ["/venv/bin/python", "-m", "vllm.entrypoints.cli.main", "serve", "/models/m"]
    assert value(argv, "--uds") == "/run/plan.sock"
    assert value(argv, "--served-model-name") == "m"
    assert (value(argv, "--max-model-len"), value(argv, "--max-num-seqs")) == ("2048", "4")
    assert "--enable-prompt-tokens-details" in argv, "the request book shows cached prompt tokens"
    assert "--kv-cache-dtype" not in argv
    assert "--enforce-eager" not in argv
    assert "--speculative-config" not in argv
    assert environment["VLLM_CACHE_ROOT"] == "/cache/vllm"


def test_kernels_are_kept_in_one_place_unless_another_is_named() -> None:
    patched = Additions((), {"VLLM_CACHE_ROOT": "/cache/vllm/patched"})
    assert build(settings(), additions=patched)[1]["TRITON_CACHE_DIR"] == "/cache/vllm/triton"
    other = settings(variables=("TRITON_CACHE_DIR=/mine",))
    assert build(other)[1]["TRITON_CACHE_DIR"] == "/mine"
    assert "TRITON_CACHE_DIR" not in build(settings(), "cpu")[1]


def test_nothing_leaves_the_machine() -> None:
    _, environment = build(settings())
    for name in ("VLLM_NO_USAGE_STATS", "DO_NOT_TRACK", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        assert environment[name] == "1"


def test_every_setting_reaches_the_command() -> None:
    argv, environment = build(
        settings(
            kv_cache_dtype="turboquant_k8v4",
            dtype="bfloat16",
            tensor_parallel=2,
            gpu_memory=0.85,
            kv_cache_gib=1.5,
            batched_tokens=4096,
            eager=True,
            prefix_caching=False,
            batch_invariant=True,
            speculation="mtp",
            draft_tokens=2,
            dummy_weights=True,
            tokenizer=False,
            tool_parser="hermes",
            reasoning_parser="qwen3",
            devices={"CUDA_VISIBLE_DEVICES": "GPU-1,GPU-2"},
            extra_arguments=("--seed", "1"),
        )
    )
    assert value(argv, "--kv-cache-dtype") == "turboquant_k8v4"
    assert value(argv, "--tensor-parallel-size") == "2"
    assert value(argv, "--kv-cache-memory-bytes") == str(3 * 2**29)
    assert value(argv, "--load-format") == "dummy"
    assert value(argv, "--tool-call-parser") == "hermes"
    assert json.loads(value(argv, "--speculative-config")) == {"method": "mtp", "num_speculative_tokens": 2}
    assert {"--enforce-eager", "--no-enable-prefix-caching", "--skip-tokenizer-init"} <= set(argv)
    assert environment["CUDA_VISIBLE_DEVICES"] == "GPU-1,GPU-2"
    assert environment["VLLM_BATCH_INVARIANT"] == "1"
    assert argv[-2:] == ["--seed", "1"]


def test_batch_invariant_mode_is_asked_for_alone_and_on_gpus() -> None:
    assert "VLLM_BATCH_INVARIANT" not in build(settings())[1]
    with pytest.raises(HostError) as refused:
        build(settings(batch_invariant=True), "cpu")
    assert refused.value.reason is Reason.SETTING_INVALID


def test_the_cpu_takes_its_cache_from_the_environment() -> None:
    argv, environment = build(settings(kv_cache_gib=2.7), "cpu")
    assert environment["VLLM_CPU_KVCACHE_SPACE"] == "2"
    assert "--kv-cache-memory-bytes" not in argv
    assert build(settings(kv_cache_gib=0.3), "cpu")[1]["VLLM_CPU_KVCACHE_SPACE"] == "1"


def test_the_overlay_comes_last_and_wins() -> None:
    additions = Additions(
        ("--additional-config", "{}"), {"VLLM_CACHE_ROOT": "/cache/patched", "SNDR_OVERLAY": "/b"}
    )
    argv, environment = build(settings(extra_arguments=("--seed", "1")), additions=additions)
    assert argv[-2:] == ["--additional-config", "{}"]
    assert environment["VLLM_CACHE_ROOT"] == "/cache/patched"
    assert environment["SNDR_OVERLAY"] == "/b"


@pytest.mark.parametrize("kind", ["k8v4", "4bit_nc", "k3v4_nc", "3bit_nc"])
def test_turboquant_on_the_cpu_is_refused(kind: str) -> None:
    with pytest.raises(HostError) as caught:
        build(settings(kv_cache_dtype=f"turboquant_{kind}"), "cpu")
    assert caught.value.reason is Reason.KV_CACHE_UNSAFE
    assert "corrupt" in str(caught.value)


@pytest.mark.parametrize("flag", sorted(owned_flags()))
def test_an_extra_argument_cannot_take_ours_over(flag: str) -> None:
    with pytest.raises(HostError) as caught:
        build(settings(extra_arguments=(f"{flag}=x",)))
    assert caught.value.reason is Reason.SETTING_INVALID


def test_a_socket_that_is_too_long_is_refused() -> None:
    with pytest.raises(HostError) as caught:
        command(settings(), PYTHON, "cpu", Path("/" + "x" * 104), CACHE, Additions())
    assert caught.value.reason is Reason.SETTING_INVALID


@pytest.mark.parametrize(
    ("speculation", "method"),
    [
        ("off", None),
        ("mtp", "mtp"),
        ("ngram", "ngram"),
        ('{"method": "eagle3"}', "eagle3"),
        ("{}", "draft_model"),
    ],
)
def test_speculation_methods(speculation: str, method: str | None) -> None:
    assert speculation_method(speculation) == method


def test_broken_speculation_is_refused() -> None:
    with pytest.raises(HostError) as caught:
        build(settings(speculation='{"method": '))
    assert caught.value.reason is Reason.SETTING_INVALID


@pytest.mark.parametrize(
    "speculation",
    [
        "draft-mtp",
        "mpt",
        '{"method": "mpt"}',
        '{"method": "mtp", "num_speculative_tokens": 0}',
        '{"method": "mtp", "num_speculative_tokens": "3"}',
        '{"method": "draft_model", "num_speculative_tokens": 3}',
        '{"method": "eagle3", "model": 3}',
    ],
)
def test_a_speculation_that_vllm_would_refuse_is_refused_wherever_it_is_written(speculation: str) -> None:
    with pytest.raises(HostError) as caught:
        serve(settings(speculation=speculation), "cuda", (), "/cache", Additions())
    assert caught.value.reason is Reason.SETTING_INVALID
    assert caught.value.problem.evidence["setting"] == "speculation"


@pytest.mark.parametrize(
    "speculation",
    [
        "off",
        "ngram_gpu",
        '{"method": "qwen3_next_mtp", "num_speculative_tokens": 2}',
        '{"model": "org/draft"}',
    ],
)
def test_a_speculation_that_vllm_knows_is_written(speculation: str) -> None:
    serve(settings(speculation=speculation), "cuda", (), "/cache", Additions())


def test_temporary_files_go_beside_the_socket_where_their_own_sockets_fit() -> None:
    _, environment = build(settings())
    assert environment["TMPDIR"] == str(SOCKET.with_suffix(".tmp"))
    deep = Path("/" + "d" * 70) / "plan.sock"
    _, environment = command(settings(), PYTHON, "cuda", deep, CACHE, Additions())
    assert "TMPDIR" not in environment


def test_a_kv_cache_that_vllm_has_not_is_refused_with_those_it_has() -> None:
    with pytest.raises(HostError, match="no KV cache of type zzz") as caught:
        build(settings(kv_cache_dtype="zzz"))
    assert caught.value.reason is Reason.SETTING_INVALID
    assert caught.value.problem.evidence["setting"] == "kv_cache_dtype"
    assert "turboquant_k8v4" in caught.value.problem.cause
