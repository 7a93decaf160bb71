"""The engine that runs now and is replaced by a start: one engine runs at a time."""

from collections.abc import Mapping, Sequence
from typing import Any

from engine_host.core.errors import HostError
from engine_host.core.findings.table import finding
from engine_host.launch.resolution import Resolution
from engine_host.protocol.engine_settings.table import SETTINGS, means_something
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.patches import PlannedPatches
from engine_host.protocol.plans import Finding, LaunchPlan, Setting


def replaced(running: Sequence[Engine]) -> list[Finding]:
    """Return a finding for each engine that this start stops."""
    return [finding("replaces", engine=engine.id, name=engine.name) for engine in running]


def refuse_replacing(plan: LaunchPlan, running: Sequence[Engine]) -> None:
    """Raises HostError(conflict) when this start would end an engine that nobody is ending yet."""
    for other in running:
        if other.state not in {EngineState.DRAINING, EngineState.STOPPING}:
            raise HostError(
                Reason.CONFLICT,
                f"{other.name} runs already ({other.state.value}), and only one engine runs at a time.",
                cause=f"Starting {plan.name} would end it.",
                fix=Fix(text=f"Put {plan.name} in its place.", command=replacing(plan)),
                evidence={"engine": other.id, "name": other.name},
            )


def replacing(plan: LaunchPlan) -> str:
    """The command line that does the same, and may end the engine that runs."""
    return plan.command if "--replace" in plan.command.split() else f"{plan.command} --replace"


def memory_of(running: Sequence[Engine]) -> int:
    """Bytes that the engines to be replaced give back."""
    return sum(engine.readings.memory or 0 for engine in running if engine.readings)


def changes(
    engine: str,
    resolved: Resolution,
    patches: PlannedPatches | None,
    running: Sequence[Engine],
    preset: str = "",
) -> tuple[str, ...]:
    """Return the differences from the engine that runs now: preset, settings, and patches by `+` and `−`."""
    if not running:
        return ()
    plan: LaunchPlan = running[0].plan
    before = {setting.name: setting.value for setting in plan.settings}
    after = resolved.values()
    same = plan.engine == engine
    found = [] if plan.preset == preset else [f"preset: {plan.preset or 'none'} → {preset or 'none'}"]
    found += [] if same else [f"engine: {plan.engine} → {engine}"]
    found += [
        f"{setting.name}: {_in_words(before.get(setting.name))} → {_in_words(setting.value)}"
        for setting in resolved.settings()
        # Another engine has settings of its own; what it lacks did not change.
        if (same or setting.name in before) and _changes(engine, setting, before, after)
    ]
    had = plan.patches.chosen if plan.patches else ()
    gets = patches.chosen if patches else ()
    moved = [f"+{name}" for name in gets if name not in had] + [
        f"−{name}" for name in had if name not in gets
    ]
    return (*found, *([f"patches: {' '.join(moved)}"] if moved else ()))


def _changes(engine: str, setting: Setting, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return True where the engine would do something else: two words for one thing are no change."""
    row, was = SETTINGS.get(setting.name), before.get(setting.name)
    if row is None:
        return bool(was != setting.value)
    meant = any(means_something(setting.name, values) for values in (before, after))
    return meant and not row.same(engine, row.spelled(was), setting.value)


def _in_words(value: object) -> str:
    """A value for people; None leaves it to the engine."""
    if value is None:
        return "auto"
    if isinstance(value, list | tuple):
        return " ".join(map(str, value)) or "none"
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)
