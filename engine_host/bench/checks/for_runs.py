"""The checks that a speed has to pass before it is published, and equal answers of two that are compared."""

from collections.abc import Sequence
from functools import partial

from engine_host.bench.checks.needle import needle_gate
from engine_host.bench.checks.subject import Subject, Verdict, failed, judged, passed, shown, skipped
from engine_host.bench.checks.tools import tool_gate
from engine_host.protocol.bench.checks import Check, CheckName, Outcome
from engine_host.protocol.bench.lab import LabEngine

_QUESTIONS = (
    "What does the function len do in Python?",
    "Write a Python function that adds two numbers.",
    "Tell me a story about Python.",
)
_TOKENS = 64
# Whose arithmetic is meant to differ, so that its answers may.
_OTHER_ARITHMETIC = ("kv_cache_dtype", "kv_type_k", "kv_type_v", "dtype", "quantization")


def failure(checks: Sequence[Check]) -> str:
    """Return the check that failed, with its reason; empty where none did."""
    return next((f"{one.title}: {one.why}" for one in checks if one.outcome is Outcome.FAILED), "")


async def gate_of(subject: Subject, name: CheckName | None, tokens: int) -> tuple[Check, ...]:
    """Check what a workload asks for; `tokens` is the length of its longest prompt."""
    if name is CheckName.TOOL_CALL:
        return (await judged(name, "calls tools, streamed and not", tool_gate, subject),)
    if name is CheckName.NEEDLE_SHORT and tokens:
        title = f"finds a fact in {tokens:,} tokens"
        return (await judged(name, title, partial(needle_gate, tokens=tokens), subject),)
    return ()


async def parity_of(subject: Subject, other: Subject, one: LabEngine, base: LabEngine) -> Check:
    """Check that a subject answers as the other does at temperature 0, where it is meant to."""
    meant = _meant_to_differ(one, base)

    async def judge(asked: Subject) -> Verdict:
        return skipped(meant) if meant else await _parity(asked, other)

    return await judged(CheckName.GREEDY_PARITY, "answers as the other at temperature 0", judge, subject)


def _meant_to_differ(one: LabEngine, other: LabEngine) -> str:
    if not (one.id and other.id):
        return "nothing is known of what answers at an address"
    if one.model_path != other.model_path:
        return "they are other models"
    differs = [n for n in _OTHER_ARITHMETIC if one.settings.get(n, "") != other.settings.get(n, "")]
    if differs or one.engine != other.engine:
        return f"their arithmetic is meant to differ: {', '.join(differs) or 'other engines'}"
    return ""


async def _parity(subject: Subject, other: Subject) -> Verdict:
    agreed = []
    for question in _QUESTIONS:
        wanted = await other.ask(question, max_tokens=_TOKENS, thinking=False)
        again = await other.ask(question, max_tokens=_TOKENS, thinking=False)
        given = await subject.ask(question, max_tokens=_TOKENS, thinking=False)
        if error := wanted.error or again.error or given.error:
            return failed(error)
        if wanted.text != again.text:
            return skipped("the other one does not repeat itself, so nothing can be told", said=question)
        if wanted.text != given.text:
            return failed(
                f"“{question}” is answered otherwise", wanted=shown(wanted.text), given=shown(given.text)
            )
        agreed.append(question)
    return passed(questions=len(agreed))
