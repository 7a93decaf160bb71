"""The refusal of settings that belong to another engine, by their names."""

from collections.abc import Sequence

from engine_host.core.errors import HostError
from engine_host.protocol.catalog import PresetEngine
from engine_host.protocol.errors import Reason
from engine_host.protocol.launch.plans import EngineKind


def foreign_settings(engine: EngineKind | PresetEngine, owner: EngineKind, names: Sequence[str]) -> HostError:
    """The refusal of settings that only the other engine knows."""
    listed = ", ".join(names)
    return HostError(
        Reason.SETTING_INVALID,
        f"{engine.value} does not know {listed}.",
        cause=f"{'It is a setting' if len(names) == 1 else 'They are settings'} of {owner.value}.",
        fix=f"Leave {listed} out, or run a model that {owner.value} reads.",
        evidence={"engine": engine.value, "settings": list(names)},
    )
