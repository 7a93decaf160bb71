"""The checks that a speed has to pass before it is published, and equal answers of two that are compared."""

from collections.abc import Sequence
from functools import partial

from engine_host.bench.checks.needle import needle_gate
from engine_host.bench.checks.subject import Subject, Verdict, failed, judged, passed, shown, skipped
from engine_host.bench.checks.tools import tool_gate
from engine_host.protocol.bench.checks import Check, CheckName, Outcome
from engine_host.protocol.bench.lab import LabEngine
from engine_host.protocol.language import tr

_QUESTIONS = (
    "What does the function len do in Python?",
    "Write a Python function that adds two numbers.",
    "Tell me a story about Python.",
)
_TOKENS = 64
# All other settings, versions and patches may round otherwise, which turns an answer where two tokens tie.
_SAME_ARITHMETIC = {"name", "port", "host", "context", "keep", "gpus", "verify"}


def failure(checks: Sequence[Check]) -> str:
    """Return the check that failed, with its reason; empty where none did."""
    return next((f"{one.title}: {one.why}" for one in checks if one.outcome is Outcome.FAILED), "")


async def gate_of(subject: Subject, name: CheckName | None, tokens: int) -> tuple[Check, ...]:
    """Check what a workload asks for; `tokens` is the length of its longest prompt."""
    if name is CheckName.TOOL_CALL:
        return (await judged(name, tr("calls tools, streamed and not"), tool_gate, subject),)
    if name is CheckName.NEEDLE_SHORT and not tokens:
        why = tr("the server does not report the tokens of the prompt")
        return (Check(name=name, title="finds a fact in a long prompt", outcome=Outcome.SKIPPED, why=why),)
    if name is CheckName.NEEDLE_SHORT:
        title = tr("finds a fact in {tokens:,} tokens", tokens=tokens)
        return (await judged(name, title, partial(needle_gate, tokens=tokens), subject),)
    return ()


async def parity_of(subject: Subject, other: Subject, one: LabEngine, base: LabEngine) -> Check:
    """Check that a subject answers as the other does at temperature 0, where both compute alike.

    Where they do not, other answers are told and strike nothing.
    """
    why, differs = _not_comparable(one, base), _rounding(one, base)

    async def judge(asked: Subject) -> Verdict:
        if why:
            return skipped(why)
        found = await _parity(asked, other)
        if differs and found.outcome is Outcome.FAILED:
            return skipped(
                f"{found.why}, which may be rounding: {', '.join(differs)} differ", **found.evidence
            )
        return found

    return await judged(CheckName.GREEDY_PARITY, tr("answers as the other at temperature 0"), judge, subject)


def _not_comparable(one: LabEngine, other: LabEngine) -> str:
    if not (one.id and other.id):
        return "nothing is known of what answers at an address"
    return "they are other models" if one.model_path != other.model_path else ""


def _rounding(one: LabEngine, other: LabEngine) -> list[str]:
    """Return the names of all that may make the same model round otherwise."""
    names = (one.settings.keys() | other.settings.keys()) - _SAME_ARITHMETIC
    differs = sorted(name for name in names if one.settings.get(name) != other.settings.get(name))
    return differs + [
        name for name in ("engine", "version", "patches") if getattr(one, name) != getattr(other, name)
    ]


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
