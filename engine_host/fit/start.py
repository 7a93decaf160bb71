"""The input of an estimate: a model, the settings of its start, and the devices."""

from dataclasses import dataclass

from engine_host.fit.shapes.model import ModelShape
from engine_host.fit.shapes.tensors import WeightBytes
from engine_host.protocol.launch.plans import EngineKind, ServerChoice

# The vLLM that is meant where nobody says which.
USUAL_VERSION = "0.32.0"


@dataclass(frozen=True, slots=True)
class Model:
    """A model by its numbers; `context` is what it was trained for, in tokens.

    `drafter`: another model drafts for it. `pooling`: how it makes one vector of a text, where that is known.
    """

    name: str
    format: str
    shape: ModelShape
    weights: WeightBytes
    context: int | None = None
    quantization: str = ""
    architecture: str = ""
    rope_scaled: bool = False
    unknown: tuple[str, ...] = ()
    drafter: bool = False
    pooling: str = ""


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU, or main memory; bytes, bytes a second, operations a second.

    `taken` is what others hold; what the model being replaced holds is not among it. `power_share` is the
    power limit over what the GPU is made for.
    """

    name: str
    total: int
    taken: int = 0
    sm: str | None = None
    bandwidth: float | None = None
    flops: float | None = None
    pcie_lanes: int | None = None
    power_share: float | None = None

    @property
    def free(self) -> int:
        """Bytes that a start can have."""
        return max(self.total - self.taken, 0)


@dataclass(frozen=True, slots=True)
class Start:
    """The settings of a start; KV types by the engine's own names, `devices` are used alike.

    `embeddings`: it answers with vectors or scores; `pooling` is llama.cpp's way to make one of a text.
    `version` of vLLM: 0.26 and 0.32 divide a GPU's memory differently. `lacking` is the number of GPUs that
    it is meant for and that are not there; it is computed as if they were like the others. Of llama.cpp on
    GPUs `gpu_layers` is how many of the last layers they hold, the output matrix among them (None: all), and
    `cpu_experts` of how many of the first layers the experts stay in main memory.
    Without `flash_attention` llama.cpp has the scores of a batch in its compute buffer.
    """

    engine: EngineKind
    devices: tuple[Device, ...]
    cpu: bool
    context: int
    streams: int = 1
    kv: str = "auto"
    kv_v: str = "auto"
    gpu_memory: float = 0.9
    kv_cache: int | None = None
    batched_tokens: int = 2048
    drafting: bool = False
    draft_tokens: int = 3
    prefix_caching: bool = True
    eager: bool = False
    embeddings: bool = False
    pooling: str = ""
    spared_layers: bool = True
    eight_bit_head: bool = False
    grouped_attention: bool = False
    hybrid_manager: bool | None = None
    server: ServerChoice = ServerChoice.AUTO
    version: str = USUAL_VERSION
    lacking: int = 0
    gpu_layers: int | None = None
    cpu_experts: int = 0
    flash_attention: bool = True

    @property
    def build(self) -> str:
        """The build of the engine: "cpu" or "cuda"."""
        return "cpu" if self.cpu else "cuda"

    @property
    def tensor_parallel(self) -> int:
        """The number of GPUs that share each layer (vLLM), or the layers among them (llama.cpp)."""
        return len(self.devices)
