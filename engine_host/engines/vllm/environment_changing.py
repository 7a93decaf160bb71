"""No engine starts from an environment that is being installed or removed."""

from collections.abc import Iterable

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.jobs import Job, JobKind
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import LaunchPlan

_CHANGES = {JobKind.ENGINE_INSTALL, JobKind.ENGINE_PIN, JobKind.ENGINE_REMOVE}


def refuse_changing(plan: LaunchPlan, jobs: Iterable[Job]) -> None:
    """Raises HostError(conflict) while a job changes the plan's environment, or waits to."""
    for job in jobs:
        changes = job.kind in _CHANGES and not job.ended
        if changes and plan.installation and job.touches == f"vllm {plan.installation}":
            raise HostError(
                Reason.CONFLICT,
                tr(
                    "{plan} cannot start: vLLM {installation} is being changed.",
                    plan=plan.name,
                    installation=plan.installation,
                ),
                cause=tr("“{job}” is {state}.", job=job.title, state=job.state.value),
                fix=Fix(text="Wait for its end, or cancel it.", command=f"sndr jobs cancel {job.id}"),
                evidence={"job": job.id, "installation": plan.installation},
            )
