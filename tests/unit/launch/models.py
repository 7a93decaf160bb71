"""Models and servers as plans see them; nothing is on disk but what a test writes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from engine_host.core.errors import HostError
from engine_host.engines.llamacpp.servers import ServerCapabilities, ServerCommand
from engine_host.launch.dependencies import Environment, PatchFacts, PlanPatches
from engine_host.launch.resolution import Resolution
from engine_host.library.gguf import GgufInfo
from engine_host.protocol.errors import Reason
from engine_host.protocol.launch.plans import Layer, ServerChoice
from engine_host.protocol.patches import PatchChoice, PlannedPatches

PATH = Path("/models/m.gguf")


def model(**fields: Any) -> GgufInfo:
    """A dense model of 16 layers: 16 × 4 heads × (64 + 64) elements a token."""
    known = GgufInfo(
        path=PATH,
        parts=(PATH,),
        version=3,
        architecture="llama",
        name="M",
        parameters=10**9,
        quantization="Q4_0",
        size=1 << 30,
        tensor_bytes=1 << 30,
        context=4096,
        layers=16,
        embedding_length=1024,
        feed_forward=4096,
        vocabulary=32_000,
        heads=16,
        kv_heads=4,
        head_dim=64,
        value_dim=64,
    )
    return replace(known, **fields)


def server(choice: ServerChoice = ServerChoice.BUILT, **fields: Any) -> ServerCapabilities:
    """A server that can do everything, on the processor."""
    known = ServerCapabilities(
        command=ServerCommand(choice, ("/opt/llama-server",), Path("/opt/llama-server")),
        version="1",
        build=None,
        commit="",
        flags=frozenset(
            {
                "--slots", "--metrics", "--jinja", "--cache-type-k", "--cache-type-v", "--flash-attn",
                "--spec-type", "--spec-draft-n-max", "--gpu-layers", "--embeddings", "--mlock",
                "--batch-size", "--ubatch-size", "--override-kv",
            }
        ),
        kv_types=("f16", "q8_0", "q4_0"),
        speculation=("draft-mtp", "ngram-simple"),
        devices=(),
        has_unix_socket=True,
    )  # fmt: skip
    return replace(known, **fields)


async def no_environment(wanted: str | None) -> Environment:
    """vLLM is not installed."""
    raise HostError(Reason.NOT_FOUND, f"vLLM is not installed ({wanted}).")


def no_patches(_facts: PatchFacts, _choice: PatchChoice) -> PlanPatches:
    """There are no patches."""
    return PlanPatches(PlannedPatches(digest="", chosen=()))


def resolved(**values: Any) -> Resolution:
    """A resolution of defaults and these values."""
    known: dict[str, Any] = {
        "context": 4096,
        "streams": 1,
        "kv_type_k": "f16",
        "kv_type_v": "f16",
        "speculation": "off",
        "draft_tokens": 3,
        "gpu_layers": None,
    }
    found = Resolution()
    for name, value in (known | values).items():
        found.set(name, value, Layer.OVERRIDE)
    return found
