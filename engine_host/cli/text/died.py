"""An engine that ended by itself, in lines for a terminal: what ended it first, then the end of its log."""

from engine_host.cli.output import problem_lines
from engine_host.client.ends import age_words, ended, what_it_did
from engine_host.protocol.engines import Engine


def died_lines(engine: Engine, now: float | None = None) -> list[str]:
    """Return what ended an engine, what its log says of it, and what leads on; with `now` also since when."""
    age = f" {age_words(ended(engine), now)}" if now is not None else ""
    lines = [f"{engine.name} ({engine.id}) {what_it_did(engine)}{age}:"]
    if engine.problem is not None:
        lines += problem_lines(engine.problem)
    if engine.last_lines:
        silent = engine.told_line is None
        lines.append("  The end of its log:" if silent else "  Its log; the line that tells it is marked:")
        lines += [f"  {line}" for line in engine.marked_lines]
    # Where it never had a process there is no log, and nothing died.
    log = [f"  $ sndr logs {engine.id}"] if engine.stages else []
    return lines if engine.was_refused else [*lines, *log, f"  $ sndr autopsy {engine.id}"]
