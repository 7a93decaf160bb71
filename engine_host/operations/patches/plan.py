"""The patches of a launch plan: selected for its circumstances, and written as a bundle."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine_host.engines.vllm.command import speculation_method
from engine_host.engines.vllm.pins import PINS
from engine_host.launch.dependencies import Environment, PatchFacts, PlanPatches
from engine_host.overlay.bundle import PTH_LINE, PTH_NAME, write_bundle
from engine_host.overlay.patch_catalog import PatchCatalog
from engine_host.overlay.selection import StartProperties, Switches, select
from engine_host.protocol.patches import PatchChoice, PlannedPatches
from engine_host.protocol.presets import ResolvedPreset


@dataclass(frozen=True)
class PatchPlans:
    """Plans the patches of starts; catalogue and switches are asked for at each."""

    catalogue: Callable[[], PatchCatalog]
    switches: Callable[[], Switches]
    cache: Path

    def __call__(self, facts: PatchFacts, choice: PatchChoice) -> PlanPatches:
        """The patches of one start, and what the engine needs to get them.

        Raises HostError: patch_unknown, patch_conflict, patch_cycle, patch_required_failed, and what writing
        the bundle raises.
        """
        properties = StartProperties(
            vllm=facts.environment.version,
            platform=facts.environment.build,
            sm=facts.sm,
            kv_cache_dtype=facts.kv_cache_dtype,
            architectures=facts.architectures,
            speculation=facts.speculation,
        )
        found = select(self.catalogue(), properties, self.switches(), choice)
        if not found.chosen:
            # Nothing enters the engine, and its caches are those of a plain vLLM.
            return PlanPatches(PlannedPatches(digest="", chosen=(), left_out=found.left_out))
        bundle = write_bundle(found.chosen, facts.environment.version, self.cache)
        planned = PlannedPatches(
            digest=bundle.digest,
            chosen=tuple(patch.id for patch in found.chosen),
            left_out=found.left_out,
            required=found.required,
        )
        variables = bundle.environment(facts.ledger, in_own_venv=_is_ready(facts.environment))
        return PlanPatches(planned, variables, bundle.arguments)


def preset_properties(resolved: ResolvedPreset, sm: str | None) -> StartProperties:
    """Describe a preset's start on GPUs of this compute capability, in the vLLM that is installed now."""
    settings = {setting.name: setting.value for setting in resolved.settings}
    architectures = resolved.model.shape.get("architectures")
    return StartProperties(
        vllm=PINS[0].version,
        platform="cuda" if resolved.preset.needs.gpus else "cpu",
        sm=(sm,) * max(1, resolved.count or 1) if sm else (),
        kv_cache_dtype=str(settings.get("kv_cache_dtype") or "auto"),
        architectures=tuple(map(str, architectures)) if isinstance(architectures, list) else (),
        speculation=speculation_method(str(settings.get("speculation") or "off")),
    )


def _is_ready(environment: Environment) -> bool:
    """Tell whether the overlay's line is in the environment; else the bundle goes in by PYTHONPATH."""
    try:
        return (environment.site_packages / PTH_NAME).read_text(encoding="utf-8") == PTH_LINE
    except (OSError, UnicodeDecodeError):
        return False
