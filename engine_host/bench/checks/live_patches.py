"""The patches of a plan: whether they are live, by the ledger of each process and what it says when asked."""

from engine_host.bench.checks.subject import Verdict, failed, passed, skipped
from engine_host.protocol.base import JsonValue
from engine_host.protocol.patches import EnginePatches, PatchOutcome, PatchResult

_WRONG = {PatchOutcome.FAILED, PatchOutcome.REVERTED}


def live_patches(found: EnginePatches) -> Verdict:
    """Judge the patches of an engine whose processes were asked just now.

    A patch whose module no process has imported is in nobody's way; one that every process skipped is not
    live.
    """
    planned = () if found.planned is None else found.planned.chosen
    if not planned:
        return skipped("no patch is part of its start")
    results: dict[str, list[PatchResult]] = {name: [] for name in planned}
    for process in found.processes:
        for result in process.results:
            results.setdefault(result.patch, []).append(result)
    faults = {name: why for name, told in results.items() if (why := _not_live(told))}
    waiting = [name for name, told in results.items() if _waits(told)]
    evidence: dict[str, JsonValue] = {
        "planned": len(planned),
        "live": len(planned) - len(faults) - len(waiting),
        "not_imported": list(waiting),
    }
    if faults:
        return failed("; ".join(f"{name}: {why}" for name, why in faults.items()), **evidence)
    return passed(**evidence)


def _not_live(told: list[PatchResult]) -> str:
    """Return why a patch is not live; empty where it is, or where its module was not imported yet."""
    if not told:
        return "no process has written of it"
    wrong = next((one for one in told if one.outcome in _WRONG), None)
    if wrong is not None:
        return f"{wrong.outcome.value}{f' ({wrong.reason.value})' if wrong.reason else ''}"
    applied = [one for one in told if one.outcome is PatchOutcome.APPLIED]
    if applied:
        answered = [one.probe for one in applied if one.probe is not None]
        if not answered:
            return "applied, but no process answered whether it is live"
        dead = next((probe for probe in answered if not probe.live), None)
        return f"applied, but not live: {dead.why}" if dead is not None else ""
    if all(one.outcome is PatchOutcome.SKIPPED for one in told):
        reason = told[0].reason
        return f"skipped{f' ({reason.value})' if reason else ''}"
    return ""


def _waits(told: list[PatchResult]) -> bool:
    return not _not_live(told) and not any(one.outcome is PatchOutcome.APPLIED for one in told)
