"""Select the patches of a start: gates, switches, requirements, conflicts; every refusal has a reason."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from engine_host.core.errors import HostError
from engine_host.overlay.loaded_patch import LoadedPatch
from engine_host.overlay.patch_catalog import ALL, PatchCatalog
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.patches import PatchChoice, PatchDecision, PatchReason


@dataclass(frozen=True)
class StartProperties:
    """The properties of a start; `sm` holds the compute capability of each of its GPUs, such as "9.0"."""

    vllm: str
    platform: str
    sm: tuple[str, ...] = ()
    kv_cache_dtype: str = "auto"
    architectures: tuple[str, ...] = ()
    speculation: str | None = None


@dataclass(frozen=True)
class Switches:
    """The patches that the person's settings switch: ids, families or `all`."""

    off: tuple[str, ...] = ()
    on: tuple[str, ...] = ()


@dataclass(frozen=True)
class Selection:
    """The patches of a start in order of application, and why each other one is not among them.

    `required` are the ids without which this start must end.
    """

    chosen: tuple[LoadedPatch, ...]
    left_out: tuple[PatchDecision, ...]
    required: tuple[str, ...] = ()


def select(
    patch_catalog: PatchCatalog, properties: StartProperties, switches: Switches, choice: PatchChoice
) -> Selection:
    """Choose the patches of a start.

    Raises HostError(patch_unknown) for a name that means nothing, HostError(patch_conflict) naming two
    chosen patches that exclude each other, HostError(patch_required_failed) for a required patch that is
    switched off.
    """
    states = switch_states(patch_catalog, switches)
    required = frozenset(patch.id for patch in patch_catalog.patches.values() if patch.file.required)
    off = _members(patch_catalog, choice.off)
    on = _members(patch_catalog, choice.on)
    only = (
        None
        if choice.only is None
        else _closure(patch_catalog, _members(patch_catalog, choice.only) | required)
    )
    chosen: dict[str, LoadedPatch] = {}
    left_out: dict[str, PatchDecision] = {}
    for patch in patch_catalog.patches.values():
        decision = (
            gate(patch, properties)
            or _switch(patch, states[patch.id], off, on, only, properties.sm)
            or _requirement(patch, left_out)
        )
        if decision is None:
            chosen[patch.id] = patch
        else:
            left_out[patch.id] = decision
            _refuse_missing(patch, decision)
    _refuse_conflicts(chosen)
    needed = tuple(name for name, patch in chosen.items() if _needed(patch, properties))
    return Selection(tuple(chosen.values()), tuple(left_out.values()), needed)


def switch_states(patch_catalog: PatchCatalog, switches: Switches) -> Mapping[str, tuple[bool, str]]:
    """Map each patch to its state, on or off, and the switch that decided; the most specific one wins.

    A name in the settings that means nothing any more is passed over: the patch may have been retired.
    """
    return {patch.id: _decided(patch, switches) for patch in patch_catalog.patches.values()}


def gate(patch: LoadedPatch, properties: StartProperties) -> PatchDecision | None:
    """Return the first reason why a patch does not apply to this start, or None."""
    for name, check in GATES.items():
        if decision := check(patch, properties):
            return PatchDecision(patch=patch.id, reason=name, detail=decision)
    return None


def _version(patch: LoadedPatch, start: StartProperties) -> str:
    required = patch.file.applies_to.vllm
    # A local part (+cpu) and a pre-release of the version count as the version itself.
    base = Version(start.vllm).base_version
    return "" if SpecifierSet(required).contains(base, prereleases=True) else f"vLLM {base} is not {required}"


def _platform(patch: LoadedPatch, start: StartProperties) -> str:
    allowed = patch.file.applies_to.platforms
    return "" if not allowed or start.platform in allowed else f"{start.platform}, not {' or '.join(allowed)}"


def _gpu(patch: LoadedPatch, start: StartProperties) -> str:
    required = patch.file.applies_to.sm
    if required is None:
        return ""
    if not start.sm:
        return f"no GPU, the patch is for SM {required}"
    wrong = [sm for sm in start.sm if not SpecifierSet(required).contains(sm)]
    return f"SM {', '.join(wrong)} is not {required}" if wrong else ""


def _kv_cache(patch: LoadedPatch, start: StartProperties) -> str:
    allowed = patch.file.applies_to.kv_cache_dtypes
    return (
        ""
        if _matches(start.kv_cache_dtype, allowed)
        else f"{start.kv_cache_dtype}, not {' or '.join(allowed)}"
    )


def _architecture(patch: LoadedPatch, start: StartProperties) -> str:
    allowed = patch.file.applies_to.architectures
    if not allowed or any(_matches(name, allowed) for name in start.architectures):
        return ""
    return f"{', '.join(start.architectures) or 'unknown'}, not {' or '.join(allowed)}"


def _speculation(patch: LoadedPatch, start: StartProperties) -> str:
    allowed = patch.file.applies_to.speculation
    if not allowed:
        return ""
    if start.speculation is None:
        return "speculation is off"
    if "any" in allowed or _matches(start.speculation, allowed):
        return ""
    return f"{start.speculation}, not {' or '.join(allowed)}"


Gate = Callable[[LoadedPatch, StartProperties], str]
GATES: Mapping[PatchReason, Gate] = {
    PatchReason.OUT_OF_RANGE: _version,
    PatchReason.WRONG_PLATFORM: _platform,
    PatchReason.WRONG_GPU: _gpu,
    PatchReason.WRONG_KV_CACHE: _kv_cache,
    PatchReason.WRONG_ARCHITECTURE: _architecture,
    PatchReason.WRONG_SPECULATION: _speculation,
}


def _needed(patch: LoadedPatch, start: StartProperties) -> bool:
    return patch.file.required or (patch.file.required_with_speculation and start.speculation is not None)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def _decided(patch: LoadedPatch, switches: Switches) -> tuple[bool, str]:
    family = patch.file.family.split(".")
    # From the patch itself over its family and the families above it to everything.
    names = [patch.id, *(".".join(family[:length]) for length in range(len(family), 0, -1)), ALL]
    for name in names:
        if name in switches.off:
            return False, name
        if name in switches.on:
            return True, name
    return patch.file.default, "default"


def _members(patch_catalog: PatchCatalog, names: Sequence[str]) -> frozenset[str]:
    return frozenset().union(*(patch_catalog.named(name) for name in names))


def _closure(patch_catalog: PatchCatalog, names: frozenset[str]) -> frozenset[str]:
    """These patches and everything that they require."""
    found, waiting = set[str](), list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += patch_catalog.get(name).file.requires
    return frozenset(found)


def _switch(
    patch: LoadedPatch,
    switch: tuple[bool, str],
    off: frozenset[str],
    on: frozenset[str],
    only: frozenset[str] | None,
    sm: tuple[str, ...],
) -> PatchDecision | None:
    if patch.id in off:
        return PatchDecision(patch=patch.id, reason=PatchReason.LEFT_OUT, detail="this start is without it")
    if only is not None:
        if patch.id in only:
            return None
        return PatchDecision(patch=patch.id, reason=PatchReason.LEFT_OUT, detail="this start has others")
    if patch.id in on or (switch[0] and switch[1] != "default"):
        return None
    if switch[0]:
        usual = patch.file.default_sm
        if usual is None or all(SpecifierSet(usual).contains(one) for one in sm):
            return None
        return PatchDecision(
            patch=patch.id,
            reason=PatchReason.NOT_DEFAULT,
            detail=tr(
                "it is on by default on SM {usual} alone, and this is SM {sm}", usual=usual, sm=", ".join(sm)
            ),
        )
    if switch[1] == "default":
        return PatchDecision(patch=patch.id, reason=PatchReason.NOT_DEFAULT, detail="it is off by default")
    return PatchDecision(
        patch=patch.id,
        reason=PatchReason.SWITCHED_OFF,
        detail=tr("settings: {switch} is off", switch=switch[1]),
    )


def _requirement(patch: LoadedPatch, left_out: Mapping[str, PatchDecision]) -> PatchDecision | None:
    for name in patch.file.requires:
        if name in left_out:
            return PatchDecision(
                patch=patch.id,
                reason=PatchReason.REQUIREMENT_SKIPPED,
                detail=tr(
                    "it requires {name}, which is out: {reason}", name=name, reason=left_out[name].reason
                ),
            )
    return None


def _refuse_missing(patch: LoadedPatch, decision: PatchDecision) -> None:
    # Where a required patch has no place, nothing is missing; where it was taken away, something is.
    if not patch.file.required or decision.reason in GATES:
        return
    raise HostError(
        Reason.PATCH_REQUIRED_FAILED,
        tr("Nothing is started without the patch {patch}: {file}.", patch=patch.id, file=patch.file.title),
        cause=decision.detail,
        fix=_enable_fix(patch, decision),
        evidence={"patch": patch.id, "reason": decision.reason.value},
    )


def _enable_fix(patch: LoadedPatch, decision: PatchDecision) -> Fix:
    if decision.reason is PatchReason.LEFT_OUT:
        return Fix(text="Start again and do not leave it out.")
    if decision.reason is PatchReason.REQUIREMENT_SKIPPED:
        return Fix(text="Let the patches in that it requires.", command=f"sndr patches show {patch.id}")
    return Fix(text="Switch it on.", command=f"sndr patches switch on {patch.id}")


def _refuse_conflicts(chosen: Mapping[str, LoadedPatch]) -> None:
    for patch in chosen.values():
        for other in patch.file.conflicts:
            if other in chosen:
                raise HostError(
                    Reason.PATCH_CONFLICT,
                    tr("The patches {patch} and {other} exclude each other.", patch=patch.id, other=other),
                    cause="Both are on, and both would be applied to this start.",
                    fix=Fix(text="Switch one of them off.", command=f"sndr patches switch off {other}"),
                    evidence={"patches": [patch.id, other]},
                )
