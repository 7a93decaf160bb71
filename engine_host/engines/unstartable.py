"""Plans that may not start: an error among their findings, or a consent that nobody has given."""

from engine_host.core.errors import HostError, consent_needed
from engine_host.protocol.base import Severity
from engine_host.protocol.errors import Reason
from engine_host.protocol.plans import LaunchPlan


def refuse_unstartable(plan: LaunchPlan) -> None:
    """Raise HostError with the plan's first finding that stops a start, and HostError(consent_needed)."""
    if plan.consent is not None:
        # Whoever has the person's consent takes this out of the plan.
        raise consent_needed(plan.consent, "its first start", f"sndr launch {plan.preset}")
    for finding in plan.findings:
        if finding.severity is Severity.ERROR:
            raise HostError(
                finding.reason or Reason.ENGINE_START_FAILED,
                finding.message,
                fix=finding.fix,
                evidence=finding.evidence,
            )
