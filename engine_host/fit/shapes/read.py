"""A model by its numbers, from its files or from a config alone."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from engine_host.core.errors import HostError
from engine_host.fit.parts import Basis
from engine_host.fit.shapes.gguf import gguf_shape, unknown_of
from engine_host.fit.shapes.model import LARGEST, Layer, ModelShape, read_shape
from engine_host.fit.shapes.quantization import Quantization, read_quantization
from engine_host.fit.shapes.tensors import (
    WeightBytes,
    checkpoint_weights,
    formula_weights,
    gguf_tables,
    gguf_weights,
)
from engine_host.fit.start import Model
from engine_host.library.checkpoint import CONFIG, CheckpointInfo, read_json
from engine_host.library.gguf import GgufInfo
from engine_host.protocol.errors import Reason


def model_of(info: GgufInfo | CheckpointInfo, name: str, bits: float | None = None) -> Model:
    """The model in files; `bits` is of a weight where there is a config alone.

    Reads the tables of tensors, which takes milliseconds. Raises HostError(unsupported) that names what the
    files do not say, and the reasons of reading them.
    """
    if isinstance(info, GgufInfo):
        shape = gguf_shape(info)
        return Model(
            name,
            "GGUF",
            shape,
            gguf_weights(info),
            info.context,
            info.quantization,
            info.architecture,
            unknown=unknown_of(info),
            pooling=info.pooling,
        )
    config = read_json(info.path / CONFIG)
    shape = read_shape(config)
    if not info.mtp_layers:
        # The config may speak of drafting layers whose weights were stripped.
        shape = replace(shape, mtp_layers=0)
    return Model(
        name,
        info.format,
        shape,
        checkpoint_weights(info, shape, bits, _quantization(config, bits) if info.shape else None),
        info.context,
        info.quantization,
        info.architecture,
        info.rope_scaled,
        _unknown(config),
    )


def model_of_config(
    config: Mapping[str, Any],
    name: str,
    *,
    gguf: bool = False,
    context: int | None = None,
    quantization: str = "",
    bits: float | None = None,
    size: int | None = None,
    basis: Basis = Basis.CATALOGUE,
) -> Model:
    """The model of a config.json; `size` is of its weights' files where `basis` knows that.

    Raises HostError(unsupported) that names what the config does not say.
    """
    shape = read_shape(config)
    tables = gguf_tables(quantization) if gguf else None
    weights = formula_weights(shape, bits, _quantization(config, bits) if size is None else None, tables)
    if size is not None:
        weights = _scaled(weights, size, basis, tables=tables is None)
    return Model(
        name,
        "GGUF" if gguf else "shape",
        shape,
        weights,
        context if context is not None and 0 < context <= LARGEST else None,
        quantization,
        _architecture(config),
        unknown=_unknown(config),
    )


def windowed(config: Mapping[str, Any]) -> ModelShape | None:
    """The shape in a config whose layers attend within a window, which a GGUF file does not say of each.

    None for every other config, and one that is silent.
    """
    try:
        shape = read_shape(config)
    except HostError as error:
        if error.reason is Reason.UNSUPPORTED:
            return None
        raise
    return shape if shape.count(Layer.SLIDING) else None


def _scaled(weights: WeightBytes, size: int, basis: Basis, *, tables: bool = True) -> WeightBytes:
    """The same groups, as large together as the files are; without `tables` what is known of those stays."""
    whole, known = weights.loaded(drafting=True), weights.embedding + weights.head
    # Tables that leave less than half of the files to the layers are not those of these files.
    tables = tables or 2 * known > size
    factor = size / whole if tables else (size - known) / (whole - known)
    of_tables = factor if tables else 1
    return WeightBytes(
        embedding=round(weights.embedding * of_tables),
        head=round(weights.head * of_tables),
        body=round(weights.body * factor),
        experts=round(weights.experts * factor),
        drafting=round(weights.drafting * factor),
        vision=weights.vision,
        basis=basis,
        drafting_tables=round(weights.drafting_tables * factor),
    )


def _architecture(config: Mapping[str, Any]) -> str:
    listed = config.get("architectures")
    first = listed[0] if isinstance(listed, list) and listed else ""
    return first[:200] if isinstance(first, str) else ""


def _quantization(config: Mapping[str, Any], bits: float | None) -> Quantization | None:
    """Read the quantisation of a config; None where `bits` are given."""
    return None if bits is not None else read_quantization(config)


def _unknown(config: Mapping[str, Any]) -> tuple[str, ...]:
    if isinstance(config.get("vision_config"), Mapping):
        return ("what its vision tower needs while it reads a picture",)
    return ()
