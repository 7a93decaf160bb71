"""The subject of Launch, a model of this machine or a preset, for the form, the plan and the fit."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field

from engine_host.protocol.catalog import ModelEntry, PresetEngine
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import EngineKind
from engine_host.protocol.models import ModelFile
from engine_host.protocol.presets import PresetItem

LLAMA_CPP, VLLM = EngineKind.LLAMA_CPP, EngineKind.VLLM
_ENGINES = {PresetEngine.LLAMA_CPP: LLAMA_CPP, PresetEngine.VLLM: VLLM}
ENGINE_NAMES = {"llama.cpp": "llama.cpp", "vllm": "vLLM", "sglang": "SGLang"}


@dataclass(frozen=True)
class Subject:
    """A model or a preset; `drafts`: it has layers that draft, `longest`: tokens that it was trained for."""

    id: str
    title: str
    engine: EngineKind
    drafts: bool
    longest: int | None
    problem: Problem | None = None
    model: ModelFile | None = field(default=None, compare=False)
    preset: PresetItem | None = field(default=None, compare=False)

    @property
    def is_preset(self) -> bool:
        """True for a preset."""
        return self.preset is not None

    @property
    def asks(self) -> dict[str, str]:
        """The fields that name it in requests."""
        return {"preset": self.id} if self.is_preset else {"model": self.id}

    @property
    def command(self) -> str:
        """The command line that starts it as it is, or writes its start down where only others can."""
        if self.problem is not None and self.problem.fix is not None and self.problem.fix.command:
            return self.problem.fix.command
        return shlex.join(["sndr", "launch" if self.is_preset else "run", self.id])


def engine_of(model: ModelFile | None) -> EngineKind:
    """The engine that runs a model: GGUF files run on llama.cpp, checkpoints and shapes on vLLM."""
    return VLLM if model is not None and model.format in ("safetensors", "shape") else LLAMA_CPP


def of_model(model: ModelFile) -> Subject:
    """A model of this machine."""
    return Subject(
        id=model.id,
        title=model.name,
        engine=engine_of(model),
        drafts=model.mtp_layers > 0,
        longest=model.context,
        problem=model.problem,
        model=model,
    )


def of_preset(item: PresetItem, entry: ModelEntry | None = None) -> Subject:
    """A preset, with its model of the catalogue where that was read already."""
    preset = item.preset
    variant = entry.variant(preset.variant) if entry is not None else None
    problem = None
    if not item.startable:
        name = ENGINE_NAMES[preset.engine.value]
        problem = Problem(
            reason=Reason.UNSUPPORTED,
            message=tr("This program does not start {name}.", name=name),
            cause=tr("The preset is here for its figures and its command."),
            fix=Fix(
                text=tr("Write the start down for something that does."),
                command=f"{shlex.join(['sndr', 'launch', preset.id])} --render docker",
            ),
        )
    return Subject(
        id=preset.id,
        title=preset.title,
        engine=_ENGINES.get(preset.engine, VLLM),
        drafts=bool(entry and entry.mtp_layers) and (variant is None or variant.mtp is not False),
        longest=entry.context if entry is not None else None,
        problem=problem,
        preset=item,
    )
