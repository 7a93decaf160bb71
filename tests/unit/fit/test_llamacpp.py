"""Bytes of llama.cpp's buffers against what its server prints of the demo model (0c1e570)."""

from dataclasses import replace
from typing import Any

import pytest

from engine_host.core.package_data import resources
from engine_host.fit import llamacpp
from engine_host.fit.kv import ggml_token_bytes
from engine_host.fit.parts import GIB, MIB, Basis, Part
from engine_host.fit.shapes.gguf import gguf_shape
from engine_host.fit.shapes.model import Layer, ModelShape, read_shape
from engine_host.fit.shapes.tensors import gguf_weights
from engine_host.fit.start import Device, Model, Start
from engine_host.library.gguf import read_gguf
from engine_host.protocol.launch.plans import EngineKind, ServerChoice
from tests.unit.fit.test_kv import DENSE, GEMMA_4, demo


def demo_gguf() -> Model:
    info = read_gguf(resources() / "models" / "sndr-demo" / "sndr-demo-q8_0.gguf")
    return Model(info.name, "GGUF", gguf_shape(info), gguf_weights(info), info.context)


def start(**values: Any) -> Start:
    memory = Device("memory", 16 * GIB)
    return replace(Start(EngineKind.LLAMA_CPP, (memory,), cpu=True, context=2048), **values)


def test_the_file_and_the_config_say_the_same_shape() -> None:
    from_file, from_config = (
        gguf_shape(read_gguf(resources() / "models" / "sndr-demo" / "sndr-demo-q8_0.gguf")),
        demo(),
    )
    assert replace(from_file, tied=True, value_dim=None) == from_config


@pytest.mark.parametrize(("drafting", "printed"), [(False, 10.76), (True, 11.76)])
def test_weights_are_those_that_are_loaded(drafting: bool, printed: float) -> None:
    weights = demo_gguf().weights
    assert weights.basis is Basis.FILES
    assert round(weights.loaded(drafting=drafting) / MIB, 2) == printed


@pytest.mark.parametrize(
    ("settings", "printed"),
    [
        ({}, 2.00),
        ({"streams": 4}, 8.00),
        ({"streams": 4, "kv": "q8_0", "kv_v": "q8_0"}, 4.25),
        ({"context": 8192}, 8.00),
        ({"context": 2000}, 2.00),
        # Two layers of the model and one that drafts.
        ({"streams": 2, "drafting": True}, 4.00 + 2.00),
    ],
)
def test_kv_cache(settings: dict[str, Any], printed: float) -> None:
    assert llamacpp.kv_bytes(demo_gguf(), start(**settings)) == printed * MIB


@pytest.mark.parametrize(
    ("settings", "printed"), [({}, 0.82), ({"streams": 4}, 3.28), ({"streams": 2, "drafting": True}, 6.56)]
)
def test_states(settings: dict[str, Any], printed: float) -> None:
    assert round(llamacpp.state_bytes(demo_gguf().shape, start(**settings)) / MIB, 2) == printed


@pytest.mark.parametrize(
    ("settings", "printed"),
    [
        ({}, 9.54),
        ({"streams": 4}, 9.61),
        ({"context": 8192, "batched_tokens": 256}, 7.78),
        ({"streams": 2, "drafting": True}, 9.56 + 5.52),
    ],
)
def test_compute_buffers(settings: dict[str, Any], printed: float) -> None:
    built = start(**settings, server=ServerChoice.BUILT)
    part = next(part for part in llamacpp.parts(demo_gguf(), built) if part.name == "compute")
    assert part.bytes == pytest.approx(printed * MIB, rel=0.01)


@pytest.mark.parametrize(
    ("settings", "printed"),
    [
        ({"context": 256}, 3.64),
        ({"context": 1024, "streams": 2}, 8.02),
        ({"context": 4096, "streams": 4}, 11.10),
        ({"context": 4096}, 11.02),
        ({"streams": 2, "drafting": True}, 9.52 + 9.52),
    ],
)
def test_compute_buffers_of_the_prebuilt_server(settings: dict[str, Any], printed: float) -> None:
    """Build 11549."""
    prebuilt = start(**settings, server=ServerChoice.PREBUILT)
    part = next(part for part in llamacpp.parts(demo_gguf(), prebuilt) if part.name == "compute")
    assert part.bytes == pytest.approx(printed * MIB, rel=0.01)
    unknown = next(part for part in llamacpp.parts(demo_gguf(), start(**settings)) if part.name == "compute")
    assert unknown.low <= printed * MIB <= unknown.high


@pytest.mark.parametrize(
    ("context", "streams", "prebuilt", "built"),
    [
        (1024, 1, 8.02, 8.54),
        (1024, 2, 8.02, 8.56),
        (1024, 3, 8.04, 8.60),
        (1024, 4, 8.07, 8.61),
        (1024, 5, 9.64, 8.68),
        (1024, 8, 9.62, 8.71),
        (1024, 10, 9.79, 11.15),
        (1024, 11, 12.13, 11.24),
        (1024, 12, 12.25, 11.37),
        (1024, 16, 12.71, 11.89),
        (1024, 20, 13.89, 13.10),
        (1024, 32, 16.90, 16.27),
        (1024, 40, 19.13, 18.57),
        (1024, 48, 21.92, 20.88),
        (1024, 64, 26.02, 25.02),
        (1024, 128, 43.52, 42.52),
        (2048, 16, 13.71, None),
        (4096, 2, 11.02, None),
        (8192, 1, 15.02, None),
        (8192, 4, 15.07, None),
        (8192, 8, 16.62, None),
        (8192, 16, 19.71, None),
    ],
)
def test_compute_buffers_of_many_streams_and_long_contexts(
    context: int, streams: int, prebuilt: float, built: float | None
) -> None:
    """The servers 11549 and 0c1e570 print these figures for the demo model."""
    for printed, server in ((prebuilt, ServerChoice.PREBUILT), (built, ServerChoice.BUILT)):
        if printed is not None:
            settings = start(context=context, streams=streams, server=server)
            part = next(part for part in llamacpp.parts(demo_gguf(), settings) if part.name == "compute")
            assert part.bytes == pytest.approx(printed * MIB, rel=0.01)


@pytest.mark.parametrize(
    ("kind", "mib"), [("f16", 896), ("q8_0", 476), ("q5_0", 308), ("q4_0", 252), ("iq4_nl", 252)]
)
def test_kv_types_as_measured(kind: str, mib: int) -> None:
    """Qwen3-0.6B shape, 4 streams of 2048 cells: what llama.cpp allocated."""
    shape = read_shape({**DENSE, "num_hidden_layers": 28})
    assert 28 * 8192 * ggml_token_bytes(shape, kind, kind) == mib * MIB


def test_on_gpus_the_embedding_stays_behind() -> None:
    model = demo_gguf()
    gpus = (Device("GPU", 8 * GIB),) * 2
    one, two = (
        {part.name: part for part in llamacpp.parts(model, start(cpu=False, devices=gpus[:count]))}
        for count in (1, 2)
    )
    # It is tied to the head, so the GPU has a copy of it.
    assert one["weights"].bytes == model.weights.loaded(drafting=False)
    assert two["weights"].bytes == -(-one["weights"].bytes // 2)
    assert two["weights"].low < two["weights"].bytes < two["weights"].high
    assert "CUDA context" in one


def test_layers_with_a_window_keep_the_window_and_one_batch() -> None:
    """Window of 1,024 and a batch of 512: 1,536 cells, of every stream (llama_kv_cache_iswa)."""
    kinds = (["sliding_attention"] * 5 + ["full_attention"]) * 6
    shape = read_shape({**DENSE, "layer_types": kinds, "sliding_window": 1024})
    model = replace(demo_gguf(), shape=shape)
    token = ggml_token_bytes(shape, "f16", "f16")
    assert llamacpp.kv_bytes(model, start(context=32_768)) == (6 * 32_768 + 30 * 1536) * token
    assert llamacpp.kv_bytes(model, start(context=32_768, streams=3)) == 3 * (6 * 32_768 + 30 * 1536) * token
    assert llamacpp.kv_bytes(model, start(context=1024)) == 36 * 1024 * token, "no more than there are tokens"


def test_wide_heads_of_full_layers_count_for_those_alone() -> None:
    shape = read_shape(GEMMA_4)
    model = replace(demo_gguf(), shape=shape)
    near, far = 16 * 256 * 2 * 2, 4 * 512 * 2 * 2
    assert llamacpp.kv_bytes(model, start(context=8192)) == 10 * 8192 * far + 50 * 1536 * near


def dense(width: int, feed_forward: int, heads: int, kv_heads: int, head_dim: int, vocabulary: int) -> Model:
    """A dense decoder with random weights (engine_host/bench/random_model.py)."""
    shape = ModelShape((Layer.FULL,) * 3, width, heads, kv_heads, head_dim, vocabulary, feed_forward)
    return replace(demo_gguf(), shape=shape)


SHAPES = {
    "demo": demo_gguf(),
    "small": dense(256, 768, 4, 2, 64, 4096),
    "wide": dense(512, 2048, 8, 4, 64, 1024),
    "many words": dense(512, 1024, 8, 4, 64, 16_384),
    "few heads": dense(512, 1536, 4, 1, 64, 16_384),
    "many heads": dense(256, 512, 8, 8, 64, 16_384),
    "widest": dense(256, 4096, 4, 2, 64, 6144),
    "0.6B": dense(1024, 3072, 16, 8, 128, 151_936),
}


def compute(model: Model, **settings: Any) -> Part:
    return next(part for part in llamacpp.parts(model, start(**settings)) if part.name == "compute")


@pytest.mark.parametrize(
    ("name", "built", "prebuilt"),
    [
        ("small", 8.51, 9.02),
        ("wide", 18.01, 19.02),
        ("many words", 11.01, 13.02),
        ("few heads", 14.51, 16.02),
        ("many heads", 8.01, 8.52),
        ("widest", 28.01, 28.52),
        ("0.6B", 28.01, 30.02),
    ],
)
def test_compute_buffers_of_dense_shapes(name: str, built: float, prebuilt: float) -> None:
    """What 0c1e570 and 11549 print for batches of 512 and a context of 2,048, on the processor."""
    found = compute(SHAPES[name], server=ServerChoice.PREBUILT)
    assert found.bytes == pytest.approx(prebuilt * MIB, rel=0.005)
    found = compute(SHAPES[name], server=ServerChoice.BUILT)
    assert found.low <= built * MIB <= found.high
    assert found.bytes == pytest.approx(built * MIB, rel=0.1)


PLAIN = {
    "four heads": dense(256, 768, 4, 2, 64, 4096),
    "16 heads": dense(1024, 3072, 16, 8, 128, 8192),
    "12 heads": dense(768, 2048, 12, 4, 64, 8192),
    "all keys": dense(512, 1024, 8, 8, 64, 1024),
    "wide feed-forward": dense(512, 4096, 4, 1, 128, 1024),
}


@pytest.mark.parametrize(
    ("name", "context", "streams", "batch", "printed"),
    [
        ("demo", 512, 1, 512, 9.02),
        ("demo", 2048, 1, 512, 24.02),
        ("demo", 4096, 8, 512, 44.02),
        ("demo", 8192, 1, 256, 42.01),
        ("demo", 8192, 1, 512, 84.02),
        ("demo", 8192, 4, 512, 84.02),
        ("demo", 16384, 1, 512, 164.02),
        ("demo", 32768, 1, 128, 81.00),
        ("four heads", 512, 1, 512, 8.51),
        ("four heads", 8192, 4, 512, 83.51),
        ("four heads", 32768, 1, 128, 80.88),
        ("16 heads", 2048, 1, 512, 90.01),
        ("16 heads", 8192, 1, 256, 147.01),
        ("16 heads", 8192, 4, 512, 294.01),
        ("12 heads", 2048, 1, 512, 62.01),
        ("12 heads", 8192, 1, 256, 109.01),
        ("all keys", 2048, 1, 512, 44.01),
        ("all keys", 8192, 1, 256, 76.01),
        ("wide feed-forward", 2048, 1, 512, 33.51),
        ("wide feed-forward", 8192, 1, 256, 43.26),
    ],
)
def test_compute_buffers_without_flash_attention(
    name: str, context: int, streams: int, batch: int, printed: float
) -> None:
    """What 11549 prints with `--flash-attn off` on the processor: every head's scores are in it."""
    settings = {"context": context, "streams": streams, "batched_tokens": batch, "flash_attention": False}
    found = compute({**SHAPES, **PLAIN}[name], server=ServerChoice.PREBUILT, **settings)
    assert found.bytes == pytest.approx(printed * MIB, rel=0.016)
    assert found.low <= printed * MIB <= found.high


def test_what_flash_attention_copies_is_not_counted_without_it() -> None:
    model = demo_gguf()
    gpu = {"cpu": False, "devices": (Device("GPU", 8 * GIB),), "kv": "q8_0", "context": 8192}
    names = [
        {part.name for part in llamacpp.parts(model, start(**gpu, flash_attention=on))}
        for on in (True, False)
    ]
    assert names[0] - names[1] <= {"attention's copies"}
    assert "attention's copies" not in names[1]


@pytest.mark.parametrize(
    ("name", "settings", "built", "prebuilt"),
    [
        ("demo", {"context": 2048, "pooling": "mean"}, 74.09, 82.11),
        ("demo", {"context": 8192, "pooling": "mean"}, 392.34, 424.44),
        ("demo", {"context": 2048, "streams": 4, "pooling": "mean"}, 74.11, 82.13),
        ("demo", {"context": 512, "streams": 8, "pooling": "mean"}, 18.04, 19.04),
        ("demo", {"context": 8192, "streams": 2, "pooling": "last"}, 24.52, 26.53),
        ("small", {"context": 2048, "pooling": "mean"}, 42.06, 50.09),
        ("small", {"context": 8192, "pooling": "mean"}, 264.25, 240.34),
        ("wide", {"context": 8192, "pooling": "mean"}, 384.25, 400.34),
        ("many words", {"context": 512, "pooling": "mean"}, 37.52, 37.52),
        ("many words", {"context": 8192, "pooling": "mean"}, 656.25, 720.34),
        ("many words", {"context": 2048, "streams": 2, "pooling": "last"}, 35.01, 39.02),
        ("few heads", {"context": 4096, "streams": 2, "pooling": "mean"}, 296.14, 328.19),
        ("many heads", {"context": 2048, "pooling": "mean"}, 142.06, 146.09),
        ("widest", {"context": 4096, "streams": 2, "pooling": "mean"}, 240.14, 244.19),
        ("0.6B", {"context": 2048, "pooling": "mean"}, 1211.06, 1235.09),
        ("0.6B", {"context": 4096, "streams": 2, "pooling": "mean"}, 2422.14, 2486.19),
        ("0.6B", {"context": 8192, "streams": 2, "pooling": "last"}, 306.76, 314.77),
    ],
)
def test_compute_buffers_of_starts_for_embeddings(
    name: str, settings: dict[str, Any], built: float, prebuilt: float
) -> None:
    """What 0c1e570 and 11549 print: the scores of every word for each token of a batch are in them."""
    settings = {**settings, "embeddings": True}
    found = compute(SHAPES[name], server=ServerChoice.PREBUILT, **settings)
    assert found.bytes == pytest.approx(prebuilt * MIB, rel=0.005)
    found = compute(SHAPES[name], server=ServerChoice.BUILT, **settings)
    assert found.low <= built * MIB <= found.high
    assert found.bytes == pytest.approx(built * MIB, rel=0.11)
    unknown = compute(SHAPES[name], **settings)
    assert unknown.low <= min(built, prebuilt) * MIB <= max(built, prebuilt) * MIB <= unknown.high


def test_a_window_beside_an_embedding_batch_keeps_the_whole_batch() -> None:
    model = replace(demo_gguf(), shape=read_shape(GEMMA_4))
    window = llamacpp.kv_bytes(model, start(context=8192))
    assert llamacpp.kv_bytes(model, start(context=8192, embeddings=True, pooling="last")) == window
    assert llamacpp.kv_bytes(model, start(context=8192, embeddings=True)) > window


@pytest.mark.parametrize(
    ("kinds", "values"),
    [(("f16", "f16"), 0), (("q8_0", "q8_0"), 2), (("f16", "q4_0"), 1), (("auto", "auto"), 0)],
)
def test_a_quantised_cache_on_a_gpu_is_copied_for_one_layer(kinds: tuple[str, str], values: int) -> None:
    read = demo_gguf()
    on_gpu = start(cpu=False, kv=kinds[0], kv_v=kinds[1], context=4096, streams=2)
    copies = sum(part.bytes for part in llamacpp.parts(read, on_gpu) if part.name == "attention's copies")
    full = read.shape.full
    all_of_it = 4096 * 2 * full.kv_heads * full.head_dim * values * 2
    # A part of them lies where other layers have their values.
    assert all_of_it - 8 * MIB <= copies <= all_of_it
    large = replace(on_gpu, context=1 << 20)
    copied = [
        part for part in llamacpp.parts(read, large) if part.name == "attention's copies" and part.bytes
    ]
    assert bool(copied) is (values > 0)
    assert not [one for one in llamacpp.parts(read, replace(on_gpu, cpu=True)) if "copies" in one.name]


def test_layers_that_the_gpu_has_not_take_nothing_of_it() -> None:
    read = demo_gguf()
    layers = len(read.shape.layers)

    def sizes(number: int | None) -> tuple[int, int, int]:
        on_gpu = start(cpu=False, gpu_layers=number)
        weights = next(part.bytes for part in llamacpp.parts(read, on_gpu) if part.name == "weights")
        return weights, llamacpp.kv_bytes(read, on_gpu), llamacpp.state_bytes(read.shape, on_gpu)

    assert sizes(None) == sizes(-1) == sizes(layers + 1) == sizes(99)
    found = [sizes(number) for number in range(layers + 2)]
    assert found == sorted(found)
    assert found[0] == (0, 0, 0)
    # One is the output matrix alone.
    assert found[1] == (read.weights.head or read.weights.embedding, 0, 0)
