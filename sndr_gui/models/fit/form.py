"""The form of Fit: model, hardware, settings; and the equivalent command."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from engine_host.protocol.engine_settings.questions import settings_asked
from engine_host.protocol.language import tr
from engine_host.protocol.launch.fit import Change, FitGpu, FitRequest
from engine_host.protocol.launch.plans import ALL_ENGINES, EngineKind

_GIB = 2**30
# Settings that the question and the command line name alike.
_PLAIN = (
    "context", "streams", "kv", "flash_attention", "gpu_memory", "kv_cache_gib", "batched_tokens",
    "gpu_layers", "cpu_experts", "draft_tokens", "acceptance_length", "bits",
)  # fmt: skip
# The others, which have an option of another name or none with a value.
_OTHERS = ("tensor_parallel", "speculation", "eager")
_ASKED = (*_PLAIN, *_OTHERS)


class ModelSource(StrEnum):
    """The source that a model is known from."""

    HERE = "here"
    CATALOGUE = "catalogue"
    PRESET = "preset"
    FILE = "file"
    HUB = "hub"


class HardwareSource(StrEnum):
    """The hardware that it is computed for."""

    HERE = "here"
    CPU = "cpu"
    CARD = "card"
    FREE = "free"


@dataclass(frozen=True)
class FitForm:
    """The form of Fit; None leaves a value to the host. Memory in GiB, bandwidth in GB/s.

    No variant is the largest one that fits. `replace`: what runs on this machine ends first.
    """

    source: ModelSource = ModelSource.HERE
    model: str = ""
    catalogue: str = ""
    variant: str = ""
    preset: str = ""
    path: str = ""
    repository: str = ""
    pinned: str = ""
    where: HardwareSource = HardwareSource.HERE
    card: str = ""
    count: int = 1
    total: float | None = 24.0
    taken: float | None = None
    bandwidth: float | None = None
    replace: bool = False
    engine: EngineKind = EngineKind.AUTO
    context: int | None = None
    streams: int | None = None
    kv: str | None = None
    flash_attention: str | None = None
    tensor_parallel: int | None = None
    gpu_memory: float | None = None
    kv_cache_gib: float | None = None
    batched_tokens: int | None = None
    gpu_layers: int | None = None
    cpu_experts: int | None = None
    speculation: bool | None = None
    draft_tokens: int | None = None
    acceptance_length: float | None = None
    eager: bool | None = None
    bits: float | None = None

    @property
    def name(self) -> str:
        """The model as the host finds it; empty while none is chosen, or for a preset."""
        match self.source:
            case ModelSource.HERE:
                return self.model
            case ModelSource.CATALOGUE:
                return f"{self.catalogue}/{self.variant}" if self.variant else self.catalogue
            case ModelSource.FILE:
                return self.path.strip()
            case ModelSource.HUB:
                repository = self.repository.strip()
                # Pinned: computed from the commit that was read, whatever is there now.
                return self.pinned if self.pinned.partition("@")[0] == repository else repository
            case _:
                return ""

    @property
    def missing(self) -> str:
        """The thing to choose first, as a sentence; empty when the question can be asked."""
        if self.source is ModelSource.PRESET and not self.preset:
            return tr("Choose a preset.")
        if self.source is not ModelSource.PRESET and not self.name:
            return {
                ModelSource.FILE: "Enter the path of a GGUF file, a folder with weights or a config.json.",
                ModelSource.HUB: "Enter the name of a model on Hugging Face, such as Qwen/Qwen3-8B.",
            }.get(self.source, tr("Choose a model."))
        if self.where is HardwareSource.CARD and not self.card:
            return tr("Choose a GPU.")
        if self.where is HardwareSource.FREE and not self.total:
            return tr("Enter how much memory the GPU has.")
        return ""

    @property
    def here(self) -> bool:
        """True when it is computed for this machine."""
        return self.where in (HardwareSource.HERE, HardwareSource.CPU)

    @property
    def asks_engine(self) -> bool:
        """True when the engine is open: a preset has its own."""
        return self.source is not ModelSource.PRESET

    def request(self) -> FitRequest:
        """Return the request to the host; it holds only what was set."""
        asked: dict[str, Any] = {"grid": True}
        if self.source is ModelSource.PRESET:
            asked["preset"] = self.preset
        else:
            asked["model"] = self.name
            if self.engine is not EngineKind.AUTO:
                asked["engine"] = self.engine
        if self.where is HardwareSource.CPU:
            asked["cpu"] = True
        elif self.where is HardwareSource.CARD:
            asked["hardware"] = self._hardware
            if self.taken:
                asked["taken_gib"] = self.taken
        elif self.where is HardwareSource.FREE:
            asked["gpus"] = (self._gpu(),) * self.count
        if self.replace and self.here:
            asked["instead_of"] = (ALL_ENGINES,)
        for name in _ASKED:
            if (value := getattr(self, name)) is not None:
                asked[name] = value
        return FitRequest.model_validate(asked)

    def command(self) -> str:
        """Return the equivalent command."""
        words = ["sndr", "fit"]
        if self.source is ModelSource.PRESET:
            words += ["--preset", self.preset or "PRESET"]
        else:
            words.append(self.name or "MODEL")
            if self.engine is not EngineKind.AUTO:
                words += ["--engine", self.engine.value]
        if self.where is HardwareSource.CPU:
            words.append("--cpu")
        elif self.where is HardwareSource.CARD:
            words += ["--hardware", self._hardware]
            words += ["--taken", f"{self.taken:.12g}"] if self.taken else []
        elif self.where is HardwareSource.FREE:
            words += ["--gpu", self._figures] * self.count
        words += ["--replace"] if self.replace and self.here else []
        for name in _PLAIN:
            if (value := getattr(self, name)) is not None:
                words += [
                    f"--{name.replace('_', '-')}",
                    f"{value:.12g}" if isinstance(value, float) else str(value),
                ]
        if self.tensor_parallel is not None:
            words += ["--tp", str(self.tensor_parallel)]
        for name in ("speculation", "eager"):
            if (value := getattr(self, name)) is not None:
                words.append(f"--{name}" if value else f"--no-{name}")
        return shlex.join(words)

    def settings(self, engine: EngineKind) -> dict[str, Any]:
        """Return the settings of the form as a preset for this engine names them."""
        asked = {name: getattr(self, name) for name in _ASKED}
        if self.speculation:
            # Which way of drafting is the preset's matter.
            del asked["speculation"]
        return settings_asked(engine, asked)

    @property
    def _hardware(self) -> str:
        return f"{self.count}x {self.card}" if self.count > 1 else self.card

    def _gpu(self) -> FitGpu:
        return FitGpu(
            name="GPU",
            total=round((self.total or 0) * _GIB),
            taken=round((self.taken or 0) * _GIB),
            bandwidth=self.bandwidth * 1e9 if self.bandwidth else None,
        )

    @property
    def _figures(self) -> str:
        figures = [self.total or 0, self.taken or 0, self.bandwidth or 0]
        while len(figures) > 1 and not figures[-1]:
            figures.pop()
        return ":".join(f"{figure:.12g}" for figure in figures)


def change_of(change: Change, form: FitForm) -> dict[str, Any] | None:
    """Return the values of the form that make a change; None where nothing of the form does."""
    if change.gpus is not None:
        return _of_gpus(change.gpus, form)
    if other := change.asks.get("model"):
        # The files of the other one say which engine reads them.
        catalogue, _, variant = str(other).partition("/")
        source, engine = ModelSource.CATALOGUE, EngineKind.AUTO
        return {"source": source, "catalogue": catalogue, "variant": variant, "engine": engine}
    return {name: value for name, value in change.asks.items() if name in _ASKED} or None


def _of_gpus(count: int, form: FitForm) -> dict[str, Any] | None:
    """Return the values for so many GPUs, where the form may have them."""
    asked = form.where in (HardwareSource.CARD, HardwareSource.FREE) and count <= 8
    return {"count": count, "tensor_parallel": None} if asked else None
