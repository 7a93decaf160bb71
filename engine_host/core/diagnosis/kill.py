"""Judge who ended an engine with SIGKILL, which leaves no word in a log: the system, or a person."""

import signal
from collections.abc import Mapping
from typing import Any

from engine_host.protocol.bench.autopsy import Ending
from engine_host.protocol.errors import Fix, FixPart, Problem, Reason
from engine_host.protocol.language import formed, tr

FULL = 0.95
"""The share of RAM from which a SIGKILL is taken for want of memory."""
_LEFT = 0.8
"""The share of RAM below which the kernel ended nothing for want of the machine's memory."""
ENDING = "ending"
"""The name of the verdict in the evidence of a problem."""
_SHELL = 128


def raise_limit() -> str:
    """Return what helps where the limit of a container or service was met."""
    return tr(
        "Raise the limit of the container or service that it ran in (MemoryMax): the machine had RAM left."
    )


def was_killed(problem: Problem) -> bool:
    """Return True where the engine, or a process of it, was ended with SIGKILL, and no line tells why."""
    return "line" not in problem.evidence and any(
        _signal(problem.evidence, name) == signal.SIGKILL for name in ("exit_code", "process_exit_code")
    )


def met_limit(oom_kills: object, ram_share: object) -> bool:
    """Return True where memory ran out within the limit of a container or service: the machine had more."""
    return bool(oom_kills) and isinstance(ram_share, float) and ram_share < _LEFT


def judge_kill(when: str, oom_kills: int | None, ram_share: float | None) -> tuple[Ending, str]:
    """Return the kind of an end by SIGKILL, and a sentence about it.

    `when` follows the verb. `oom_kills` are the processes that the kernel's out-of-memory killer ended
    meanwhile, `ram_share` how full RAM was at the last sample, 0 to 1; None where that was not measured.
    """
    full = ram_share is not None and ram_share >= FULL
    measured = "" if ram_share is None else f" RAM was {formed(ram_share, '.0%')} full at the last sample."
    if oom_kills:
        return Ending.MAIN_MEMORY, (
            f"SIGKILL {when}, as the kernel's out-of-memory killer ended {oom_kills}"
            f" {'process' if oom_kills == 1 else 'processes'} of this machine.{measured}"
            + (" So a limit was met, and not the machine's RAM." if met_limit(oom_kills, ram_share) else "")
        )
    if full:
        counted = "" if oom_kills is None else " The kernel ended nothing; systemd-oomd or earlyoom may."
        return Ending.MAIN_MEMORY, f"SIGKILL {when}.{measured}{counted}"
    if oom_kills == 0:
        return Ending.KILLED, (
            f"Somebody ended it with SIGKILL {when}. It did not run out of memory: the kernel's out-of-memory"
            f" killer was not at work.{measured}"
        )
    if ram_share is None:
        return Ending.KILLED, (
            f"SIGKILL {when}. Neither RAM nor the kernel's out-of-memory killer was measured, so who sent it"
            " is not known."
        )
    return Ending.KILLED, (
        f"SIGKILL {when}.{measured} Somebody ended it, unless memory ran out within the last second."
    )


def judged(
    problem: Problem, when: str, oom_kills: int | None, ram_share: float | None, again: str
) -> Problem:
    """Return the problem of an end by SIGKILL as it is told everywhere; `again` starts it again."""
    ending, sentence = judge_kill(when, oom_kills, ram_share)
    process = problem.evidence.get("process")
    if isinstance(process, str):
        sentence = tr(
            "Of its processes {process} ended first. {sentence}", process=process, sentence=sentence
        )
    for_memory = ending is Ending.MAIN_MEMORY
    limited = met_limit(oom_kills, ram_share)
    fix = problem.fix if for_memory else Fix(text="Start it again.", command=again)
    if limited:
        own = problem.fix or Fix(text="")
        said = tr("{sentence} {text}", sentence=raise_limit(), text=own.text) if own.text else raise_limit()
        fix = own.model_copy(update={"text": said, "begins_with": FixPart.RAISE_LIMIT, "rest": own.text})
    measured = {ENDING: ending.value, "oom_kills": oom_kills, "ram_share": ram_share}
    return Problem(
        reason=Reason.OUT_OF_MEMORY if for_memory else Reason.ENGINE_KILLED,
        message=sentence,
        cause="It reached the limit of the container or service (MemoryMax) that it ran in."
        if limited
        else "Memory ran out, and the system ended what held most of it."
        if for_memory
        else "",
        fix=fix,
        evidence={**problem.evidence, **measured},
    )


def verdict_of(problem: Problem | None) -> tuple[Ending, str] | None:
    """Return what was judged at the end of an engine, or None where nothing was."""
    told = problem.evidence.get(ENDING) if problem is not None else None
    if problem is None or told not in (Ending.MAIN_MEMORY.value, Ending.KILLED.value):
        return None
    return Ending(told), problem.message


def _signal(evidence: Mapping[str, Any], name: str) -> int | None:
    """Return the number of the signal that an exit code tells; a shell adds 128 to that of what it ran."""
    code = evidence.get(name)
    if not isinstance(code, int) or isinstance(code, bool):
        return None
    if code < 0:
        return -code
    return code - _SHELL if code > _SHELL else None
