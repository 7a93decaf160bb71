"""Why an engine ended, by a table of what it says in its log."""

import re
import signal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine_host.engines.stage_reader import matched_part
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.language import tr

_LONGEST = 400


@dataclass(frozen=True)
class ExitRule:
    """The meaning of a matching line; the sentences name groups of the pattern, `model` and `version`."""

    pattern: str
    reason: Reason
    message: str
    cause: str
    fix: str


def signal_name(number: int) -> str:
    """Return the name of a signal; real-time signals have none but the first and the last."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def explain_lines(
    lines: Iterable[str], rules: Sequence[ExitRule], model: str, version: str, code: int | None
) -> Problem | None:
    """The end as the first line says it that matches a rule."""
    for line in map(matched_part, lines):
        for rule in rules:
            if found := re.search(rule.pattern, line):
                groups = {name: said[:_LONGEST] for name, said in found.groupdict(default="").items()}
                named = {"model": model, "version": version, **groups}
                told = {name: value for name, value in groups.items() if value}
                return Problem(
                    reason=rule.reason,
                    message=tr(rule.message, **named),
                    cause=tr(rule.cause, **named),
                    fix=Fix(text=tr(rule.fix, **named)),
                    evidence={**told, "exit_code": code, "line": line.strip()[:400]},
                )
    return None
