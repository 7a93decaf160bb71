"""Context, streams and KV type of a start: the steps of their sliders, and the question they ask of fit."""

from __future__ import annotations

from typing import Any

from engine_host.protocol.engine_settings.questions import question_of, settings_asked
from engine_host.protocol.launch.fit import Change, FitRequest, memory_of_patches
from engine_host.protocol.launch.plans import EngineKind, LaunchPlan, ServerChoice
from sndr_gui.models.launch.form import Form
from sndr_gui.models.launch.subject import VLLM, Subject

LEAST_CONTEXT = 1024
MOST_STREAMS = 256
# Where neither a model nor an answer says how long it may be.
_LONGEST = 131_072
_STREAMS = (
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    10,
    12,
    14,
    16,
    20,
    24,
    28,
    32,
    40,
    48,
    56,
    64,
    80,
    96,
    112,
    128,
    160,
    192,
    224,
    256,
)
# Eighths of a doubling: fine enough to see the bar move, coarse enough to be round.
_EIGHTHS = (8, 9, 10, 11, 12, 13, 14, 15)


def context_steps(longest: int | None, *exact: int | None) -> tuple[int, ...]:
    """The contexts that a slider offers up to the longest, with those that must be there exactly."""
    most = longest or max(_LONGEST, *(value or 0 for value in exact))
    found, base = {most}, LEAST_CONTEXT
    while base <= most:
        found |= {base * eighth // 8 for eighth in _EIGHTHS if base * eighth // 8 <= most}
        base *= 2
    found |= {value for value in exact if value and value <= most}
    return tuple(sorted(found))


def stream_steps(*exact: int | None) -> tuple[int, ...]:
    """The numbers of streams that a slider offers, with those that must be there exactly."""
    return tuple(sorted({*_STREAMS, *(value for value in exact if value and value <= MOST_STREAMS)}))


def fit_request(subject: Subject, form: Form, build: str, plan: LaunchPlan | None) -> FitRequest:
    """The question to fit: what was set, and for a model what its plan says of the rest.

    A preset resolves the rest by itself, so that only what was set is named.
    """
    planned = {setting.name: setting.value for setting in plan.settings} if plan else {}
    known: dict[str, Any] = (
        {} if subject.is_preset else {name: value for name, value in planned.items() if value is not None}
    )
    known |= form.given(subject.engine, build)
    question: dict[str, Any] = {**subject.asks, **question_of(subject.engine, known)}
    if subject.engine is VLLM:
        if plan is not None and plan.patches is not None:
            question |= memory_of_patches(plan.patches.chosen)
        if build == "cpu" and not subject.is_preset:
            question["cpu"] = True
    elif form.server in (ServerChoice.BUILT, ServerChoice.PREBUILT):
        question["server"] = form.server
    elif plan is not None and plan.server in (ServerChoice.BUILT, ServerChoice.PREBUILT):
        question["server"] = plan.server
    if form.instead_of is not None:
        question["instead_of"] = form.instead_of
    if form.gpus:
        question["use_gpus"] = form.gpus
    return FitRequest.model_validate(question)


def change_values(change: Change, engine: EngineKind) -> dict[str, Any] | None:
    """The settings that make a change of fit, or None where no setting of this start does."""
    return settings_asked(engine, change.asks) or None
