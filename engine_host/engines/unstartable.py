"""Plans that may not start: an error among their findings, no consent, or what it is called runs already."""

from collections.abc import Iterable

from engine_host.core.errors import HostError, consent_needed
from engine_host.protocol.base import Severity
from engine_host.protocol.engines import Engine
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import LaunchPlan


def refuse_unstartable(plan: LaunchPlan) -> None:
    """Raise HostError with the plan's first finding that stops a start, and HostError(consent_needed)."""
    if plan.consent is not None:
        # Whoever has the person's consent takes this out of the plan.
        raise consent_needed(plan.consent, tr("its first start"), f"sndr launch {plan.preset}")
    for finding in plan.findings:
        if finding.severity is Severity.ERROR:
            raise HostError(
                finding.reason or Reason.ENGINE_START_FAILED,
                finding.message,
                fix=finding.fix,
                evidence=finding.evidence,
            )


def refuse_running(plan: LaunchPlan, alive: Iterable[Engine]) -> None:
    """Raise HostError(conflict) for a plan of which an engine runs that it does not end first.

    Both would answer at one socket, and write one ledger.
    """
    ended = {ref.id for ref in plan.instead_of}
    for engine in alive:
        if engine.plan.id == plan.id and engine.id not in ended:
            raise HostError(
                Reason.CONFLICT,
                tr("{engine} runs already, from this very plan.", engine=engine.name),
                cause="A plan is one engine's: both would answer at the same socket.",
                fix=Fix(text="Plan it again, under another name or in its place.", command=plan.command),
                evidence={"engine": engine.id, "plan": plan.id},
            )
