"""The engines' official images, by version; none was pulled by this project, which the findings say."""

from dataclasses import dataclass

from engine_host.engines.vllm.pins import PINS
from engine_host.protocol.catalog import PresetEngine

# The newest build whose image is known to have been there: a release of 2026-11-17 by somebody else was made
# from it. Only one build a day gets images, so the build that this program compiles has none of its own.
_LLAMA_CPP = "b12464"
# Named with this tag by the benchmarks of InferenceX in May 2026.
_SGLANG = "v0.5.12"


@dataclass(frozen=True, slots=True)
class Image:
    """An image and the version of the engine in it."""

    address: str
    version: str


def image_of(engine: PresetEngine, *, gpu: bool, version: str | None = None) -> Image:
    """The image of an engine for NVIDIA GPUs, or for the processor; SGLang has one for GPUs alone.

    `version` is one of vLLM's, None for the one that this program installs now.
    """
    vllm = version or PINS[0].version
    match engine, gpu:
        case PresetEngine.VLLM, True:
            return Image(f"docker.io/vllm/vllm-openai:v{vllm}", vllm)
        case PresetEngine.VLLM, False:
            return Image(f"public.ecr.aws/q9t5s3a7/vllm-cpu-release-repo:v{vllm}", vllm)
        case PresetEngine.LLAMA_CPP, True:
            return Image(f"ghcr.io/ggml-org/llama.cpp:server-cuda-{_LLAMA_CPP}", _LLAMA_CPP)
        case PresetEngine.LLAMA_CPP, False:
            return Image(f"ghcr.io/ggml-org/llama.cpp:server-{_LLAMA_CPP}", _LLAMA_CPP)
        case _:
            return Image(f"docker.io/lmsysorg/sglang:{_SGLANG}", _SGLANG)
