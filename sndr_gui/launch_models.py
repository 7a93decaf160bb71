"""The columns of the list of models on Launch."""

from __future__ import annotations

from engine_host.protocol import ModelFile, ModelOrigin
from sndr_gui import formats
from sndr_gui.rows import Column


def model_columns() -> list[Column[ModelFile]]:
    """The columns of the list of models."""

    def tone(model: ModelFile) -> str:
        return "bad" if model.problem else "muted"

    def note(model: ModelFile) -> str:
        if model.problem is not None:
            return model.problem.message
        parts = [model.format] if model.format != "GGUF" else []
        if model.mtp_layers:
            parts.append("MTP")
        if model.embedding_only:
            parts.append("embeddings")
        if model.origin is ModelOrigin.BUNDLED:
            parts.append("bundled")
        return " · ".join(parts)

    def tip(model: ModelFile) -> str:
        return model.problem.sentence() if model.problem else model.path

    return [
        Column(
            "Model",
            lambda m: m.name,
            lambda m: m.name.casefold(),
            lambda m: "bad" if m.problem else "",
            tip=tip,
        ),
        Column("Size", lambda m: formats.size(m.size), lambda m: m.size, tone, right=True, tip=tip),
        Column("Quant", lambda m: m.quantization or formats.UNMEASURED, tone=tone, tip=tip),
        Column(
            "Context", lambda m: formats.count(m.context), lambda m: m.context or 0, tone, right=True, tip=tip
        ),
        Column("", note, tone=tone, tip=tip),
    ]
