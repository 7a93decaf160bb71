"""The form of Launch: the settings that it offers for an engine, and the launch request that they make."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine_host.protocol.engine_settings.row import OFF, EngineSetting
from engine_host.protocol.engine_settings.table import Overrides, means_something, settings_of
from engine_host.protocol.patches import PatchChoice
from engine_host.protocol.plans import EngineKind, LaunchRequest, ServerChoice
from sndr_gui.models.launch.subject import VLLM, Subject

Choice = tuple[str, Any]


@dataclass(frozen=True)
class Form:
    """The values that the person set; a setting that has none is left to the layers below."""

    values: Mapping[str, Any] = field(default_factory=dict)
    server: ServerChoice = ServerChoice.AUTO
    installation: str = ""
    keep: bool = False
    without: tuple[str, ...] = ()
    added: tuple[str, ...] = ()

    def fields(self, engine: EngineKind, build: str) -> tuple[EngineSetting, ...]:
        """Return the settings of an engine, without those of another build or without a meaning now."""
        return tuple(
            entry
            for entry in settings_of(engine)
            if entry.build in ("", build) and means_something(entry.name, self.values)
        )

    def given(self, engine: EngineKind, build: str) -> dict[str, Any]:
        """Return the values that were set, of the settings that the engine knows."""
        return {
            entry.name: self.values[entry.name]
            for entry in self.fields(engine, build)
            if self.values.get(entry.name) is not None
        }

    def request(self, subject: Subject, build: str) -> LaunchRequest:
        """Return the launch request for a model or a preset."""
        vllm = subject.engine is VLLM
        return LaunchRequest(
            **subject.asks,
            server=ServerChoice.AUTO if vllm else self.server,
            installation=(self.installation or None) if vllm else None,
            keep=self.keep,
            overrides=Overrides.model_validate(self.given(subject.engine, build)),
            patches=PatchChoice(off=self.without, on=self.added) if vllm else PatchChoice(),
        )


def choices_of(entry: EngineSetting, build: str, subject: Subject | None) -> tuple[Choice, ...]:
    """Return the choices of a setting of vLLM, for a build and a model."""
    if entry.name != "speculation":
        # Of a build that is not known yet those of GPUs are offered.
        of_build = {"": "cuda"}.get(build, build)
        return tuple((one.label, one.value) for one in entry.choices if one.build in ("", of_build))
    found: list[Choice] = [("Off", OFF)]
    if subject is not None and subject.drafts:
        found.append(("MTP: by the model itself", "mtp"))
    found.append(("n-gram: drafts from the prompt", "ngram"))
    if build == "cuda":
        found.append(("n-gram on the GPU", "ngram_gpu"))
    return tuple(found)


def words_of(text: str) -> tuple[tuple[str, ...], str]:
    """Split a line into arguments as a shell would, or say what is wrong with it."""
    try:
        return tuple(shlex.split(text)), ""
    except ValueError as error:
        return (), f"not a list of arguments: {error}"
