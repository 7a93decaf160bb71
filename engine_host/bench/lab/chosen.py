"""The workload that was asked for, with its choices: parts, rounds, streams, and the engine's context."""

from dataclasses import replace

from engine_host.bench.checks.needle import ladder
from engine_host.bench.lab.ladder import CONTROL
from engine_host.bench.lab.workloads import (
    WORKLOADS,
    Part,
    Workload,
    at_once,
    ladder_parts,
    repeated,
)
from engine_host.core.errors import HostError
from engine_host.protocol.bench.lab import LabAsk, RunBench, WorkloadName
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr

_ROOM = 0.9
_BESIDE = 1_500


def chosen(asked: RunBench | LabAsk, context: int | None) -> Workload:
    """Return what is asked of an engine with a context; None is one that nobody knows.

    Raises HostError(bad_request) for choices that the workload has not, and where it does not fit.
    """
    workload = WORKLOADS[asked.workload]
    if asked.streams:
        if not workload.sweep:
            raise _refused(tr("{workload} has no number of streams.", workload=asked.workload), "")
        workload = replace(workload, parts=at_once(sorted(set(asked.streams))))
    if asked.workload is WorkloadName.CONTEXT:
        if context is None:
            raise _refused(
                tr("Nobody says how long the context of that engine is."),
                tr("Its ladder ends at 0.92 of it."),
            )
        lengths = [one for one in ladder(context) if one > CONTROL]
        workload = replace(workload, parts=ladder_parts((CONTROL, *lengths)))
    if workload.parts[0].turn:
        workload = replace(workload, parts=_turns(workload, context))
    if asked.only:
        known = {part.name: part for part in workload.parts}
        if missing := [name for name in asked.only if name not in known]:
            raise _refused(
                tr("{workload} has no part “{missing}”.", workload=asked.workload, missing=missing[0]),
                tr("Its parts: {known}.", known=", ".join(known)),
            )
        workload = replace(workload, parts=tuple(known[name] for name in known if name in asked.only))
    if context is not None and (needed := longest(workload)) > context:
        raise _refused(
            tr(
                "{workload} asks prompts that with their answers take {needed:,} tokens, and the "
                "context of that engine is {context:,}.",
                workload=asked.workload,
                needed=needed,
                context=context,
            ),
            tr("What does not fit cannot be measured."),
        )
    return workload if asked.rounds is None else repeated(workload, asked.rounds)


def longest(workload: Workload) -> int:
    """Return the tokens of the longest exact prompt with its answer; 0 where none has an exact length."""
    return max(
        (
            one.tokens + one.max_tokens
            for part in workload.parts
            if not part.turn
            for one in part.requests(part.warm)
            if one.tokens is not None
        ),
        default=0,
    )


def _turns(workload: Workload, context: int | None) -> tuple[Part, ...]:
    growth = wanted = workload.parts[0].tokens or 0
    if context is not None:
        growth = min(wanted, int((_ROOM * context - _BESIDE) / len(workload.parts)))
    if growth < 64:
        raise _refused(
            tr(
                "A context of {context:,} tokens is too short for {count} turns of an agent.",
                context=context,
                count=len(workload.parts),
            ),
            "",
        )
    return tuple(replace(part, tokens=growth) for part in workload.parts)


def _refused(message: str, cause: str) -> HostError:
    return HostError(
        Reason.BAD_REQUEST,
        message,
        cause=cause,
        fix=Fix(text="See what the workloads ask.", command="sndr bench run --help"),
    )
