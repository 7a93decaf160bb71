"""Output of the commands: exit codes, text or JSON on stdout, errors with cause and next action."""

import errno
import functools
import inspect
import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Any, Concatenate, ParamSpec

import click
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from engine_host.cli.text.chosen_host import typed, typed_problem
from engine_host.cli.text.tables import folded, paragraph, room
from engine_host.core.errors import HostError
from engine_host.core.sizes import size_text
from engine_host.core.visible import visible, visible_json
from engine_host.protocol.allowed import refusal
from engine_host.protocol.base import Command
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.language import tr

P = ParamSpec("P")


class Exit(IntEnum):
    """The exit codes; part of the interface, so a number never changes its meaning."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NO_HOST = 3
    NOT_FOUND = 4
    ENGINE = 5
    CONFLICT = 6
    SYSTEM = 7
    NO_DISPLAY = 8
    INTERRUPTED = 130
    PIPE_CLOSED = 141


MEANINGS = {
    Exit.OK: "done; also what goes on until Ctrl+C ends it (run, serve, top, telemetry record)",
    Exit.FAILED: "it failed; the message says why",
    Exit.USAGE: "wrong options, an unknown setting, a value that is not allowed, "
    "or what cannot be done with this engine or machine",
    Exit.NO_HOST: "no engine host runs, it stopped answering, or it refused this program",
    Exit.NOT_FOUND: "there is no such model, engine, job or file, or it is not installed",
    Exit.ENGINE: "the engine could not be built, started or used with this model, or it does not fit",
    Exit.CONFLICT: "something is in the way: another host or engine, no free port, a full queue, no consent",
    Exit.SYSTEM: "the machine refuses: disk full, not writable, unsafe permissions",
    Exit.NO_DISPLAY: "the window has no display to be shown on (sndr-gui)",
    Exit.INTERRUPTED: "interrupted before it was done, or while it followed (`-f`)",
    Exit.PIPE_CLOSED: "the reader of the output closed it",
}

CODES = {
    Reason.BAD_REQUEST: Exit.USAGE,
    Reason.BUILD_FAILED: Exit.ENGINE,
    Reason.CANCELLED: Exit.INTERRUPTED,
    Reason.COMPILER_MISSING: Exit.ENGINE,
    Reason.CONFLICT: Exit.CONFLICT,
    Reason.CONSENT_NEEDED: Exit.CONFLICT,
    Reason.CONTEXT_TOO_LONG: Exit.USAGE,
    Reason.DATABASE_TOO_NEW: Exit.SYSTEM,
    Reason.DISK_FULL: Exit.SYSTEM,
    Reason.DOWNLOAD_FAILED: Exit.FAILED,
    Reason.ENGINE_CRASHED: Exit.ENGINE,
    Reason.ENGINE_KILLED: Exit.ENGINE,
    Reason.ENGINE_NOT_READY: Exit.ENGINE,
    Reason.ENGINE_START_FAILED: Exit.ENGINE,
    Reason.ENGINE_START_TIMEOUT: Exit.ENGINE,
    Reason.ENGINE_UNUSABLE: Exit.ENGINE,
    Reason.FLAG_UNSUPPORTED: Exit.ENGINE,
    Reason.GGUF_TOO_NEW: Exit.ENGINE,
    Reason.GGUF_TRUNCATED: Exit.ENGINE,
    Reason.HOST_GONE: Exit.NO_HOST,
    Reason.HOST_KEY_CHANGED: Exit.CONFLICT,
    Reason.HOST_KEY_UNKNOWN: Exit.CONFLICT,
    Reason.HOST_RESTARTED: Exit.NO_HOST,
    Reason.HOST_UNREACHABLE: Exit.NO_HOST,
    Reason.ILLEGAL_INSTRUCTION: Exit.ENGINE,
    Reason.INSTALL_FAILED: Exit.ENGINE,
    Reason.INTERNAL: Exit.FAILED,
    Reason.KERNEL_UNSUPPORTED: Exit.ENGINE,
    Reason.KV_CACHE_UNSAFE: Exit.ENGINE,
    Reason.KV_TYPE_UNSUPPORTED: Exit.ENGINE,
    Reason.MODEL_ARCHITECTURE_UNKNOWN: Exit.ENGINE,
    Reason.MODEL_FILE_DAMAGED: Exit.ENGINE,
    Reason.MODEL_FILE_MISSING: Exit.NOT_FOUND,
    Reason.MODEL_WEIGHTS_MISMATCH: Exit.ENGINE,
    Reason.NO_ENGINE_RUNS: Exit.NOT_FOUND,
    Reason.NOT_FOUND: Exit.NOT_FOUND,
    Reason.NOT_GGUF: Exit.ENGINE,
    Reason.NOT_WRITABLE: Exit.SYSTEM,
    Reason.OFFLINE: Exit.FAILED,
    Reason.OUT_OF_MEMORY: Exit.ENGINE,
    Reason.PATCH_CONFLICT: Exit.ENGINE,
    Reason.PATCH_CYCLE: Exit.ENGINE,
    Reason.PATCH_INVALID: Exit.ENGINE,
    Reason.PATCH_REQUIRED_FAILED: Exit.ENGINE,
    Reason.PATCH_UNKNOWN: Exit.NOT_FOUND,
    Reason.PLAN_STALE: Exit.CONFLICT,
    Reason.PORT_IN_USE: Exit.CONFLICT,
    Reason.PRESET_CONFLICT: Exit.CONFLICT,
    Reason.PRESET_INVALID: Exit.USAGE,
    Reason.PROTOCOL_MISMATCH: Exit.NO_HOST,
    Reason.PROVIDER_FAILED: Exit.FAILED,
    Reason.QUANTIZATION_UNSUPPORTED: Exit.ENGINE,
    Reason.QUEUE_FULL: Exit.CONFLICT,
    Reason.RATE_LIMITED: Exit.FAILED,
    Reason.REMOTE_NOT_ALLOWED: Exit.CONFLICT,
    Reason.RUN_FOLDER_UNSAFE: Exit.SYSTEM,
    Reason.SECOND_INSTANCE: Exit.CONFLICT,
    Reason.SETTING_INVALID: Exit.USAGE,
    Reason.SOURCE_PATCH_FAILED: Exit.ENGINE,
    Reason.SSH_AUTH_FAILED: Exit.NO_HOST,
    Reason.SSH_FAILED: Exit.FAILED,
    Reason.SSH_FORWARD_REFUSED: Exit.NO_HOST,
    Reason.SSH_LOST: Exit.NO_HOST,
    Reason.SSH_MISSING: Exit.SYSTEM,
    Reason.SSH_UNREACHABLE: Exit.NO_HOST,
    Reason.UNAUTHORIZED: Exit.NO_HOST,
    Reason.UNSUPPORTED: Exit.USAGE,
    Reason.VERIFICATION_FAILED: Exit.FAILED,
}


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print text for a person; control characters in it are shown and not obeyed."""
    click.echo(visible(text), err=err, nl=nl)


OF_THE_OUTPUT = {errno.EPIPE, errno.ENOSPC, errno.EDQUOT}
"""By these, without the name of a file, writing a command's own output fails."""
NOTE = "note"
"""The name, in the evidence of a problem, of what a command has to say beside it."""
# What a group of commands was given is known to its commands by this name.
_AS_JSON = "sndr.as_json"


class Output:
    """The output of a command: its result to stdout, everything else to stderr."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json

    def result(
        self, value: BaseModel | dict[str, Any], text: str | Iterable[str], *, verbatim: bool = False
    ) -> None:
        """The result, as JSON or as text; what has several lines, or is `verbatim`, is not folded."""
        if self.as_json:
            self.record(value)
            return
        for line in [text] if isinstance(text, str) else text:
            # What has lines of its own is a document or a diff.
            for told in [typed(line)] if verbatim or "\n" in line else paragraph(line):
                echo(told)

    def record(self, value: BaseModel | dict[str, Any], *, err: bool = False) -> None:
        """One JSON value on a line of its own; progress goes to stderr, so that the result is alone."""
        plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
        click.echo(visible_record(plain), err=err)

    def note(self, text: str) -> None:
        """Progress for a person; not part of the result."""
        if not self.as_json:
            for line in text.split("\n"):
                echo("\n".join(paragraph(line)), err=True)

    def problem(self, problem: Problem) -> Exit:
        """Say what happened, why and what to do; the exit code that goes with it."""
        problem = typed_problem(problem)
        if self.as_json:
            self.record({"error": problem.model_dump(mode="json")})
        else:
            for line in problem_lines(problem):
                # What it goes on with stands below the words behind "Why:".
                hang = " " * 14 if line.startswith("  ") else "  "
                echo("\n".join([line] if "\n" in line else folded(line, room(), hang)), err=True)
        return CODES[problem.reason]


def visible_record(value: Any) -> str:
    """Return a value as one line of JSON, which has a spelling of its own for signs that the output lacks."""
    return visible_json(json.dumps(value, ensure_ascii=not _writes_unicode()))


def output_here() -> Output:
    """Return the output of the command that runs, for what it does on its way."""
    context = click.get_current_context(silent=True)
    return Output(as_json=bool(context is not None and context.meta.get(_AS_JSON)))


def problem_lines(problem: Problem) -> list[str]:
    """A problem as lines: what, why, what to do, and what else is so after it."""
    lines = [f"Error: {problem.message}"]
    if problem.cause:
        # A program's words of several lines stay below each other.
        cause = problem.cause.strip().replace("\n", "\n" + " " * 14)
        lines.append(f"  Why:        {cause}")
    if problem.fix is not None:
        lines.append(f"  What to do: {problem.fix.text}")
        if problem.fix.command:
            lines.append(f"              $ {problem.fix.command}")
    if isinstance(note := problem.evidence.get(NOTE), str):
        lines.append(f"  Note:       {note}")
    return lines


def command(
    example: str, *more: str
) -> Callable[[Callable[Concatenate[Output, P], Exit | None]], Callable[..., int]]:
    """Give a command its examples in its help, `--json`, its Output, and the exit code of its error."""

    def made(function: Callable[Concatenate[Output, P], Exit | None]) -> Callable[..., int]:
        @click.option(
            "--json", "as_json", is_flag=True, help="Print JSON (one value a line), errors included."
        )
        @functools.wraps(function)
        def run(*args: Any, as_json: bool, **kwargs: Any) -> int:
            # `sndr jobs --json cancel ID` means the same as `sndr jobs cancel ID --json`.
            shared = click.get_current_context().meta
            shared[_AS_JSON] = as_json or shared.get(_AS_JSON, False)
            out = Output(shared[_AS_JSON])
            return _exit_code(out, lambda: function(out, *args, **kwargs))

        lines = "\n".join(f"  {one}" for one in (example, *more))
        title = "Examples" if more else "Example"
        # Behind a \b click leaves lines as they are.
        run.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\n\b\n{title}:\n{lines}"
        run.__dict__["examples"] = (example, *more)
        return run

    return made


def _exit_code(out: Output, function: Callable[[], Exit | None]) -> int:
    """Carry out a command; what it raises for a person is said."""
    try:
        return function() or Exit.OK
    except HostError as error:
        return out.problem(error.problem)
    except ValidationError as error:
        asked = _kinds(Command).get(error.title)
        if asked is None:
            raise
        # What was typed makes no request; options check most values before.
        return out.problem(_not_allowed(error, asked))
    except (UnicodeError, PydanticSerializationError) as error:
        return out.problem(
            Problem(
                reason=Reason.BAD_REQUEST,
                message="What was given is not text in UTF-8, and cannot be sent.",
                cause=str(error),
                fix=Fix(text="Type it anew, or turn the file into UTF-8 first."),
            )
        )
    except OSError as error:
        if error.errno in OF_THE_OUTPUT and error.filename is None:
            raise
        return out.problem(_refused_by_system(error))


def _refused_by_system(error: OSError) -> Problem:
    """Put what no part of the program has foreseen into words: no more processes, no folder for files."""
    why = error.strerror or str(error)
    where = f" ({os.fsdecode(error.filename)})" if isinstance(error.filename, str | bytes) else ""
    return Problem(
        reason=Reason.NOT_WRITABLE if isinstance(error, PermissionError) else Reason.INTERNAL,
        message=tr("The system refuses what this needs: {why}.", why=f"{why}{where}"),
        cause="Its limits, its rights, or its disk: the program itself has no say in it.",
        fix=Fix(text="See what is left of them: `ulimit -a`, `df -h`, `free -h`."),
    )


def _kinds(kind: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """Return a type of requests and all below it, by their names."""
    found: dict[str, type[BaseModel]] = {kind.__name__: kind}
    for one in kind.__subclasses__():
        found |= _kinds(one)
    return found


def _command_path() -> str:
    """Return the command that runs, as it is typed."""
    context = click.get_current_context(silent=True)
    # The program may have been started by another name.
    words = context.command_path.split()[1:] if context is not None else []
    return " ".join(("sndr", *words))


def _not_allowed(error: ValidationError, asked: type[BaseModel]) -> Problem:
    first = error.errors(include_url=False)[0]
    where = ".".join(map(str, first["loc"])) or error.title
    return Problem(
        reason=Reason.BAD_REQUEST,
        message=tr(
            "{where} cannot be {first}: {refusal}.",
            where=where,
            first=repr(str(first["input"])[:80]),
            refusal=refusal(first, asked),
        ),
        fix=Fix(text="Give another value.", command=f"{_command_path()} --help"),
        evidence={"field": where},
    )


def size(count: int | None) -> str:
    """Bytes as people read them; 'not measured' for None."""
    return "not measured" if count is None else size_text(count)


def clock(at: float) -> str:
    """The local time of day of an event, to the millisecond."""
    return time.strftime("%H:%M:%S", time.localtime(at)) + f".{int(at % 1 * 1000):03}"


def _writes_unicode() -> bool:
    return (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")


def writes_to_terminal() -> bool:
    """Return True if progress may overwrite its own line."""
    return sys.stderr.isatty()
