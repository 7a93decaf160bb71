"""An engine gets the variables that it is given, and none that the host, its plan or a setting owns."""

from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.engines.llamacpp.command import LlamaCppStart
from engine_host.engines.llamacpp.command import command as llamacpp_command
from engine_host.engines.vllm.command import Additions, VllmStart
from engine_host.engines.vllm.command import command as vllm_command
from engine_host.protocol.errors import Reason
from tests.unit.launch.models import server

SOCKET = Path("/run/plan.sock")


def vllm(*words: str) -> dict[str, str]:
    start = VllmStart("/m", "m", {"variables": words}, devices={"CUDA_VISIBLE_DEVICES": "GPU-1"})
    additions = Additions(environment={"SNDR_OVERLAY": "/bundle", "EXTRA": "ours"})
    return vllm_command(start, Path("/python"), "cuda", SOCKET, Path("/cache"), additions)[1]


def llamacpp(*words: str) -> dict[str, str]:
    return llamacpp_command(LlamaCppStart("/m.gguf", "m", {"variables": words}), server(), SOCKET)[1]


def test_variables_reach_the_engine() -> None:
    found = vllm("VLLM_USE_DEEP_GEMM=0", "LD_LIBRARY_PATH=/opt/cuda/lib", "NCCL_P2P_DISABLE=1")
    assert found["VLLM_USE_DEEP_GEMM"] == "0"
    assert found["LD_LIBRARY_PATH"] == "/opt/cuda/lib"
    assert found["CUDA_VISIBLE_DEVICES"] == "GPU-1"
    assert llamacpp("GGML_CUDA_NO_PINNED=1") == {"GGML_CUDA_NO_PINNED": "1"}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("CUDA_VISIBLE_DEVICES", "--gpu"),
        ("HF_HUB_OFFLINE", "host sets it"),
        ("VLLM_CACHE_ROOT", "host sets it"),
        ("EXTRA", "host sets it"),
        ("TMPDIR", "socket"),
        ("SNDR_OVERLAY", "host sets it"),
        ("SNDR_ANYTHING", "this program's own"),
        ("VLLM_CPU_KVCACHE_SPACE", "kv_cache_gib"),
        ("VLLM_API_KEY", "sndr keys"),
        ("VLLM_LOGGING_CONFIG_PATH", "sndr logs"),
        ("PYTHONPATH", "other modules"),
    ],
)
def test_what_the_host_owns_is_refused_by_name(name: str, said: str) -> None:
    with pytest.raises(HostError) as raised:
        vllm(f"{name}=x")
    problem = raised.value.problem
    assert problem.reason is Reason.SETTING_INVALID
    assert name in problem.message
    assert problem.fix is not None
    assert said in problem.fix.text
    assert problem.evidence == {"setting": "variables", "variable": name}


@pytest.mark.parametrize(
    "name", ["LLAMA_ARG_CTX_SIZE", "LLAMA_API_KEY", "LLAMA_LOG_FILE", "CUDA_DEVICE_ORDER"]
)
def test_llama_cpp_gets_no_argument_by_a_variable(name: str) -> None:
    with pytest.raises(HostError, match=name):
        llamacpp(f"{name}=1")
