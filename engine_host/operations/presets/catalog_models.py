"""Models of the catalogue as the calculator takes them."""

from dataclasses import replace

from engine_host.core.errors import HostError
from engine_host.fit.shapes.read import model_of_config
from engine_host.fit.start import Model
from engine_host.protocol.catalog import Drafter, ModelEntry, PresetEngine, Variant
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr
from engine_host.protocol.presets import ResolvedPreset


def catalogued(entry: ModelEntry, variant: Variant, bits: float | None) -> Model:
    """A model as the catalogue knows it. Raises HostError(unsupported)."""
    if not entry.shape:
        raise HostError(
            Reason.UNSUPPORTED,
            tr("The shape of {entry} is not known.", entry=entry.title),
            fix="Give the path of its config.json or of its files.",
            evidence={"model": entry.id},
        )
    return model_of_config(
        entry.shape,
        f"{entry.id}/{variant.id}",
        gguf=variant.format == "gguf",
        context=entry.context,
        quantization=variant.quantization,
        bits=bits or variant.bits,
        size=variant.size,
    )


def with_drafter(model: Model, resolved: ResolvedPreset) -> Model:
    """The model with the weights of another one that drafts for it, as large as the catalogue says."""
    drafter = next((one for one in resolved.model.drafters if one.id == resolved.preset.drafter), None)
    speculation = next((one.value for one in resolved.settings if one.name == "speculation"), None)
    if drafter is None or speculation in {None, "off"}:
        return model
    unknown = model.unknown
    if not _reads_the_models_cache(drafter, model, resolved):
        unknown = (*unknown, f"the KV cache of its drafter {drafter.repository or drafter.id}")
    model = replace(model, drafter=True)
    if drafter.size_gb is None:
        return replace(model, unknown=(*unknown, "how large that drafter is"))
    weights = replace(model.weights, drafter=round(drafter.size_gb.value * 10**9))
    return replace(model, weights=weights, unknown=unknown)


def _reads_the_models_cache(drafter: Drafter, model: Model, resolved: ResolvedPreset) -> bool:
    """Tell whether a drafter keeps nothing of its own: Gemma 4's assistants have queries alone."""
    gemma = model.architecture.startswith("Gemma4")
    return resolved.engine is PresetEngine.VLLM and drafter.method == "mtp" and gemma
