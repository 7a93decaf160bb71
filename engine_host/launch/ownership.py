"""The refusal of settings that belong to another engine, by their names."""

from collections.abc import Sequence

from engine_host.core.errors import HostError
from engine_host.protocol.catalog import PresetEngine
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import ntr, tr
from engine_host.protocol.launch.plans import EngineKind


def foreign_settings(engine: EngineKind | PresetEngine, owner: EngineKind, names: Sequence[str]) -> HostError:
    """The refusal of settings that only the other engine knows."""
    listed = ", ".join(names)
    return HostError(
        Reason.SETTING_INVALID,
        tr("{engine} does not know {listed}.", engine=engine.value, listed=listed),
        cause=ntr(
            "It is a setting of {owner}.", "They are settings of {owner}.", len(names), owner=owner.value
        ),
        fix=tr("Leave {listed} out, or run a model that {owner} reads.", listed=listed, owner=owner.value),
        evidence={"engine": engine.value, "settings": list(names)},
    )
