"""The patches that are live in engines, as series whose number the plan of a start bounds."""

from collections.abc import Iterator, Mapping

from engine_host.protocol.patches import EnginePatches, PatchOutcome, PatchResult, ProcessRole

NAME = "sndr_engine_patch_live"
TEXT = "1 where a patch of the start is in every process of this kind; state: what became of it there."
MOST_PATCHES = 400
_WORST_FIRST = (
    PatchOutcome.FAILED,
    PatchOutcome.REVERTED,
    PatchOutcome.SKIPPED,
    PatchOutcome.PENDING,
    PatchOutcome.APPLIED,
)


def live_patches(engine: EnginePatches) -> Iterator[tuple[Mapping[str, str], float]]:
    """Yield labels and 1 or 0 for each patch of the start, by kind of process.

    Ranks of one kind are told together, and what a process says of patches that nobody chose is left out:
    so there are never more series than patches times kinds of processes.
    """
    if engine.planned is None:
        return
    for role in ProcessRole:
        processes = [one for one in engine.processes if one.role is role]
        results = [{result.patch: result for result in one.results} for one in processes]
        for patch in engine.planned.chosen[:MOST_PATCHES]:
            told = [one[patch] for one in results if patch in one]
            if told:
                worst = min((one.outcome for one in told), key=_WORST_FIRST.index)
                live = len(told) == len(processes) and all(map(_is_live, told))
                yield {"patch": patch, "process": role.value, "state": worst.value}, float(live)


def _is_live(result: PatchResult) -> bool:
    """Return True for a patch that was applied, and that no later probe missed."""
    return result.outcome is PatchOutcome.APPLIED and (result.probe is None or result.probe.live)
