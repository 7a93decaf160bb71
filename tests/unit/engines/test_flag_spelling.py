"""A flag that the program sets is refused as an extra argument in each spelling that its engine takes."""

import pytest

from engine_host.core.errors import HostError
from engine_host.engines.flag_spelling import ARGPARSE, EXACT
from engine_host.engines.llamacpp import command as llamacpp
from engine_host.engines.vllm import command as vllm
from engine_host.protocol.errors import Reason


@pytest.mark.parametrize(
    ("word", "flag", "setting"),
    [
        ("--max-model-len", "--max-model-len", "context"),
        ("--max_model_len", "--max-model-len", "context"),
        ("--max_model-len=4096", "--max-model-len", "context"),
        ("--max-model-len 4096", "--max-model-len", "context"),
        ("--max-model-l", "--max-model-len", "context"),
        ("--max_model_l=4", "--max-model-len", "context"),
        ("--tensor", "--tensor-parallel-size", "tensor_parallel"),
        ("-tp=2", "-tp", "tensor_parallel"),
        ("-t", "-tp", "tensor_parallel"),
        ("--device-memory-utilization", "--device-memory-utilization", "gpu_memory"),
        ("--speculative-config.model", "--speculative-config", "speculation"),
        ("--speculative_config.model=a/b", "--speculative-config", "speculation"),
        ("-sc.model", "-sc", "speculation"),
        ("--spec-model", "--spec-model", "speculation"),
        ("--spec_tokens", "--spec-tokens", "speculation"),
        ("--additional-config.sndr", "--additional-config", ""),
        ("--additional_conf", "--additional-config", ""),
        ("--no-disable-uvicorn-access-log", "--disable-uvicorn-access-log", ""),
        ("--no_skip_tokenizer_init", "--skip-tokenizer-init", ""),
        ("--no-enforce-eager", "--enforce-eager", "eager"),
        ("--disable-prefix", "", ""),
        ("--config", "--config", ""),
        ("--conf=/tmp/x.yaml", "--config", ""),
        ("--middle_ware", "", ""),
        ("--middlew", "--middleware", ""),
    ],
)
def test_vllms_parser_has_many_spellings_of_one_flag(word: str, flag: str, setting: str) -> None:
    if not flag:
        ARGPARSE.refuse_owned([word], vllm.owned_flags())
        return
    with pytest.raises(HostError) as caught:
        ARGPARSE.refuse_owned(["--seed", "1", word], vllm.owned_flags())
    problem = caught.value.problem
    assert problem.reason is Reason.SETTING_INVALID
    assert problem.evidence["argument"] == word
    said = problem.evidence["flag"], problem.evidence["setting"]
    assert said[1] == setting
    assert said[0].removeprefix("--no-").removeprefix("--") == flag.removeprefix("--")


@pytest.mark.parametrize(
    "word",
    [
        "--seed", "--quantization", "-q", "-n", "-r", "-dcp", "-O3", "-O", "--api-server-count", "-asc",
        "--tokenizer", "--kv-cache-dtype-skip-layers", "--enable-prompt-embeds", "--config-format",
        "--reasoning-parser-plugin", "--max-num-queued-reqs", "--num-gpu-blocks-override", "--hf-overrides",
        "--disable-custom-all-reduce", "--diffusion-config", "--max-logprobs", "--compilation-config.mode",
        "-cc.mode", "--load-format-x", "-1", "-0.5", "value", "a=--model", "-", "--",
    ],
)  # fmt: skip
def test_other_flags_and_values_are_left_alone(word: str) -> None:
    ARGPARSE.refuse_owned([word], vllm.owned_flags())


@pytest.mark.parametrize(
    ("word", "setting"),
    [
        ("--ctx_size", "context"),
        ("-c", "context"),
        ("--hf_repo", ""),
        ("-hf", ""),
        ("--draft-max", "draft_tokens"),
    ],
)
def test_llamacpp_takes_underlines_for_hyphens(word: str, setting: str) -> None:
    with pytest.raises(HostError) as caught:
        EXACT.refuse_owned([word, "1"], llamacpp.owned_flags())
    assert caught.value.problem.evidence["setting"] == setting


@pytest.mark.parametrize("word", ["-n", "-f", "--ctx", "--no-warmup", "--lora", "-1", "--model_draft"])
def test_llamacpp_takes_no_beginning_for_the_whole(word: str) -> None:
    EXACT.refuse_owned([word], llamacpp.owned_flags())
