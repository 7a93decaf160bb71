"""The layers and experts of a start of llama.cpp that stay in main memory, and what that costs in speed."""

from dataclasses import dataclass

from engine_host.fit.shapes.model import Layer, ModelShape
from engine_host.fit.start import Model, Start
from engine_host.protocol.launch.plans import EngineKind

# Two channels of DDR4-3200: what speeds with layers in main memory are told for, bytes a second.
MAIN_MEMORY = 50e9


@dataclass(frozen=True, slots=True)
class Offload:
    """Parts on the GPUs: the last layers, whether the output matrix, and how many layers' experts."""

    layers: tuple[Layer, ...]
    head: bool
    experts: int

    def count(self, kind: Layer) -> int:
        """The number of layers of a kind on the GPUs."""
        return self.layers.count(kind)


def offload(shape: ModelShape, start: Start) -> Offload:
    """Return what the GPUs hold: with `gpu_layers` N the output matrix and the last N - 1 layers."""
    total = len(shape.layers)
    asked = start.gpu_layers
    whole = start.cpu or asked is None or not 0 <= asked <= total
    held = total if whole else max((asked or 0) - 1, 0)
    layers = shape.layers[total - held :]
    mixtures = shape.experts.layers if shape.experts else 0
    first = max(total - mixtures, total - held, 0 if start.cpu else start.cpu_experts)
    return Offload(layers, whole or bool(asked), max(total - first, 0))


def weights_held(model: Model, start: Start, *, drafting: bool) -> int:
    """Bytes of the weights on the GPUs; the embedding stays in main memory, a tied head is a copy of it."""
    weights, shape = model.weights, model.shape
    held = offload(shape, start)
    size = weights.loaded(drafting=drafting) - (weights.embedding if weights.head else 0)
    if len(held.layers) == len(shape.layers) and held.experts == _mixtures(shape):
        return size
    body, experts = _elsewhere(model, held)
    size -= body + experts
    return size if held.head else size - (weights.head or weights.embedding)


def main_memory_read(model: Model, start: Start) -> int:
    """Bytes that one token of one stream reads of weights in main memory; 0 where the GPUs hold all."""
    if start.engine is not EngineKind.LLAMA_CPP or start.cpu:
        return 0
    shape, held = model.shape, offload(model.shape, start)
    body, experts = _elsewhere(model, held)
    if shape.experts is not None:
        experts = experts * shape.experts.used // max(shape.experts.count, 1)
    return body + experts + (0 if held.head else model.weights.head or model.weights.embedding)


def _mixtures(shape: ModelShape) -> int:
    return shape.experts.layers if shape.experts else 0


def _elsewhere(model: Model, held: Offload) -> tuple[int, int]:
    """Bytes in main memory, of layers without their experts and of experts."""
    shape, weights = model.shape, model.weights
    layers, mixtures = len(shape.layers), _mixtures(shape)
    body = weights.body * (layers - len(held.layers)) // max(layers, 1)
    return body, weights.experts * (mixtures - held.experts) // max(mixtures, 1)
