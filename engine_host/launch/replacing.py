"""The engines that a start ends first: told in the plan, refused where nobody asked for it."""

from collections.abc import Mapping, Sequence
from typing import Any

from engine_host.core.errors import HostError
from engine_host.core.findings.table import finding
from engine_host.launch.placement import LEAVING, place
from engine_host.launch.resolution import Resolution
from engine_host.protocol.engine_settings.table import SETTINGS, means_something
from engine_host.protocol.engines import Engine
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import Finding, LaunchPlan, Setting
from engine_host.protocol.patches import PlannedPatches


def replaced(ended: Sequence[Engine]) -> list[Finding]:
    """Return a finding for each engine that this start ends."""
    return [finding("replaces", engine=engine.id, name=engine.name) for engine in ended]


def refuse_namesake(plan: LaunchPlan, running: Sequence[Engine]) -> None:
    """Raises HostError(conflict) for an engine of the same name that began after the plan was made.

    Two starts at one moment are looked at before either has begun: the plan of neither knows the other.
    """
    known = {ref.id for ref in (*plan.instead_of, *plan.beside)}
    for other in place(plan.name, (), running).beside:
        if other.name == plan.name and other.id not in known:
            raise _runs_already(plan, other, tr("It was started at the same moment."))


def refuse_replacing(plan: LaunchPlan, running: Sequence[Engine]) -> None:
    """Raises HostError(conflict) when this start would end an engine that nobody is ending yet."""
    ended = {ref.id for ref in plan.instead_of}
    for other in running:
        if other.id in ended and other.state not in LEAVING:
            raise _runs_already(plan, other, tr("Starting {plan} would end it.", plan=plan.name))


def _runs_already(plan: LaunchPlan, other: Engine, cause: str) -> HostError:
    return HostError(
        Reason.CONFLICT,
        tr("{other} runs already ({state}).", other=other.name, state=other.state.value),
        cause=cause,
        fix=Fix(
            text=tr("Put {plan} in its place, or give it another name.", plan=plan.name),
            command=plan.command,
        ),
        evidence={"engine": other.id, "name": other.name},
    )


def changes(
    engine: str,
    resolved: Resolution,
    patches: PlannedPatches | None,
    ended: Sequence[Engine],
    preset: str = "",
) -> tuple[str, ...]:
    """Return the differences from the engine that is replaced: preset, settings, patches by `+` and `−`."""
    if not ended:
        return ()
    plan: LaunchPlan = ended[0].plan
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
