"""Engines as they begin: from a plan, and from a request that came to no plan."""

import secrets
import time

from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.launch.plans import LaunchPlan, LaunchRequest, Layer, Setting


def new_engine(plan: LaunchPlan) -> Engine:
    """Return the engine of a plan before anything was done for it."""
    return Engine(
        id=f"engine-{secrets.token_hex(3)}",
        name=plan.name,
        engine=plan.engine,
        server=plan.server,
        server_version=plan.server_version,
        state=EngineState.PREPARING,
        plan=plan,
        keep=plan.keep,
        created_at=time.time(),
    )


def is_refusal(engine: Engine, name: str, reason: Reason) -> bool:
    """Return True for an engine of this name that was refused for this reason before it had a process."""
    refused = engine.state is EngineState.FAILED and not engine.stages and engine.problem is not None
    return refused and engine.name == name and engine.problem is not None and engine.problem.reason is reason


def names_nothing(request: LaunchRequest, problem: Problem) -> bool:
    """Return True where a start was refused because no model and no preset is called so.

    That is a mistake in a name, and nothing that failed; so is a folder with nothing of a model in it. A
    model that is here and cannot start, and a file that is not where it is said to be, are starts that
    failed.
    """
    if problem.reason in {Reason.NOT_FOUND, Reason.BAD_REQUEST}:
        return True
    mistaken = not {"wanted", "holds"}.isdisjoint(problem.evidence)
    unknown = problem.reason is Reason.MODEL_FILE_MISSING and mistaken
    return unknown and request.preset is None


def unplanned(request: LaunchRequest, command: str) -> LaunchPlan:
    """Return what is known of a start that could not be planned: what was asked for, and nothing computed."""
    wanted = request.model or request.preset or ""
    given = request.overrides.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    if request.name:
        given["name"] = request.name
    return LaunchPlan(
        id=f"plan-{secrets.token_hex(4)}",
        fingerprint="",
        created_at=time.time(),
        model=request.model,
        model_path=request.model,
        preset=request.preset or "",
        name=request.name or wanted.rstrip("/").rpartition("/")[2],
        engine=request.engine.value,
        server=request.server,
        server_version="",
        argv=(),
        environment={},
        settings=tuple(
            Setting(name=name, value=value, layer=Layer.OVERRIDE) for name, value in given.items()
        ),
        streams=0,
        context=0,
        speculation="",
        keep=request.keep,
        choice=request.patches,
        findings=(),
        command=command,
    )


def is_unplanned(plan: LaunchPlan) -> bool:
    """Return True for a plan that only holds what was asked for."""
    return not plan.argv and not plan.fingerprint
