"""The other machine as an install sees it: one step of ours after the other is done there.

No word of a host or a person becomes part of a command. Our own modules travel as data too: what runs there
is always the same few lines, which take them from standard input.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from engine_host.core.errors import HostError
from engine_host.core.outside import json_text
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr
from engine_host.protocol.remote.hosts import THIS_MACHINE
from engine_host.remote.install.answers import MachineAnswer
from engine_host.remote.install.there.carrying import MARK
from engine_host.remote.run import Interpreter, RemoteOutcome, RemoteScript, Runner

_SCRIPT = RemoteScript(
    "install",
    Interpreter.PYTHON,
    """
import json, sys, types
if sys.version_info < (3, 8):
    found = "python3 there is %d.%d." % sys.version_info[:2]
    why = "What is done there needs 3.8, and the host 3.11, 3.12 or 3.13."
    told = {"failed": "old_python", "message": found, "evidence": {"error": why}}
    print("\\nsndr-answer " + json.dumps(told))
    sys.exit()
stream = sys.stdin.buffer
for name, text in json.loads(stream.read(int(stream.readline()))):
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, name, "exec"), module.__dict__)
sys.exit(module.main())
""",
    held=True,
)
_ROOT = Path(__file__).parents[3]
_LONGEST_ANSWER = 4 << 20
_USUAL = 120.0
Answer = TypeVar("Answer", bound=MachineAnswer)


@dataclass(frozen=True)
class Steps:
    """Modules of ours that run on another machine, each after those that it imports; the last has the steps.

    `seconds` are for those that may take long, by name; `fixes` what to do where it is not the usual.
    """

    modules: tuple[str, ...]
    seconds: Mapping[str, float] = field(default_factory=dict)
    fixes: Mapping[Reason, str] = field(default_factory=dict)

    @cached_property
    def sent(self) -> bytes:
        """Return them as data."""
        texts = [
            (name, (_ROOT / (name.replace(".", "/") + ".py")).read_text(encoding="utf-8"))
            for name in self.modules
        ]
        return _sized(json.dumps(texts).encode())


def modules_in(package: str, *names: str) -> tuple[str, ...]:
    """Return the whole names of modules of a package."""
    return tuple(f"{package}.{name}" for name in names)


SHARED = modules_in("engine_host.remote.install.there", "places", "programs", "staying", "carrying")
"""What all steps on other machines use."""
INSTALL = Steps(
    (
        *SHARED,
        *modules_in("engine_host.remote.install.there", "service", "wholeness", "probing", "removal"),
        *modules_in("engine_host.remote.install.there", "releases", "steps"),
    ),
    {"probe": 180.0, "environment": 1800.0, "switch": 420.0, "demo": 600.0, "uninstall": 480.0},
)


async def _once(work: Callable[[], Awaitable[None]], _waits: Callable[[], None]) -> None:
    await work()


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine that is connected, by its name here.

    `steadily` does work that may be begun again where the connection broke in it, and tells of each wait.
    """

    name: str
    runner: Runner
    steadily: Callable[[Callable[[], Awaitable[None]], Callable[[], None]], Awaitable[None]] = _once


async def do(machine: Machine, step: str, kind: type[Answer], **asked: Any) -> Answer:
    """Do a step of an install there; its answer. Raises HostError, also for an answer of another kind."""
    return await do_step(machine, INSTALL, step, kind, asked)


async def do_step(
    machine: Machine, steps: Steps, step: str, kind: type[Answer], asked: Mapping[str, Any]
) -> Answer:
    """Do one of these steps there; its answer. Raises HostError, also for an answer of another kind."""
    data = steps.sent + _sized(json.dumps({**asked, "step": step}).encode())
    said = await machine.runner.run(machine.name, _SCRIPT, data, seconds=steps.seconds.get(step, _USUAL))
    answer = _answer(machine.name, step, said)
    if "done" not in answer:
        raise _failed(machine.name, steps, answer)
    try:
        return kind.model_validate(answer["done"])
    except ValidationError as error:
        raise HostError(
            Reason.INSTALL_FAILED,
            tr(
                "{machine} answered the step “{step}” in a form that is not known.",
                machine=machine.name,
                step=step,
            ),
            cause="Something there answers in the place of our program.",
            fix="Look at the machine.",
            evidence={"fields": [".".join(map(str, one["loc"])) for one in error.errors()[:10]]},
        ) from error


def _sized(content: bytes) -> bytes:
    return b"%d\n%s" % (len(content), content)


def _answer(name: str, step: str, said: RemoteOutcome) -> dict[str, Any]:
    marked = [line for line in said.stdout.splitlines() if line.startswith(MARK.encode())]
    try:
        if not marked or len(marked[-1]) > _LONGEST_ANSWER:
            raise ValueError("no answer")
        return json_text.parse_object(marked[-1][len(MARK) :])
    except ValueError as error:
        ended = f"What was run there ended in the middle. {said.last_words}".strip()
        raise HostError(
            Reason.INSTALL_FAILED,
            tr("{name} gave no answer to the step “{step}”.", name=name, step=step),
            cause="It took too long." if said.timed_out else ended,
            fix="Run the same command again: it goes on from what is there.",
            evidence={"exit": said.exit, "stderr": said.stderr, "stdout": _text(said.stdout)},
        ) from error


_REASONS = {
    "bad_request": Reason.BAD_REQUEST,
    "conflict": Reason.CONFLICT,
    "damaged": Reason.INSTALL_FAILED,
    "disk_full": Reason.DISK_FULL,
    "download_failed": Reason.DOWNLOAD_FAILED,
    "engine_start_failed": Reason.ENGINE_START_FAILED,
    "install_failed": Reason.INSTALL_FAILED,
    "not_found": Reason.NOT_FOUND,
    "not_writable": Reason.NOT_WRITABLE,
    "old_python": Reason.UNSUPPORTED,
    "unsupported": Reason.UNSUPPORTED,
    "verification_failed": Reason.VERIFICATION_FAILED,
}
_FIXES = {
    Reason.CONFLICT: "End that one there first, or wait for it; then run the same command again.",
    Reason.DISK_FULL: "Free some space there and run the same command again.",
    Reason.DOWNLOAD_FAILED: "Send the packages from here: sndr host install {name} --offline",
    Reason.NOT_WRITABLE: "Make it writable for the user that ssh logs in as.",
}


_FIXES_OF = {
    "damaged": "Make the host there whole with `sndr host update {name}`, and run the same command again.",
    "old_python": "Let python3 on the PATH of that user lead to a newer one, and run the same command again.",
}


def _failed(name: str, steps: Steps, answer: dict[str, Any]) -> HostError:
    evidence = answer.get("evidence")
    evidence = evidence if isinstance(evidence, dict) else {}
    reason = _REASONS.get(str(answer.get("failed")), Reason.INSTALL_FAILED)
    seen = _last(evidence.get("lines")) or str(evidence.get("error") or "") or _last(evidence.get("log"))
    where = tr("This machine") if name == THIS_MACHINE else name
    message = tr("{where}: {answer}", where=where, answer=answer.get("message", "A step failed."))
    if evidence.get("back_on"):
        message += f" {evidence['back_on']}, which ran before, runs again."
    elif evidence.get("back_failed"):
        message += f" What ran before does not start again either: {evidence['back_failed']}"
    usual = "Look at the lines, mend what they name, and run the same command again."
    fix = _FIXES_OF.get(str(answer.get("failed"))) or {**_FIXES, **steps.fixes}.get(reason, usual)
    return HostError(reason, message, cause=seen, fix=fix.format(name=name), evidence=evidence)


def _last(lines: object) -> str:
    return str(lines[-1]) if isinstance(lines, list) and lines else ""


def _text(raw: bytes) -> str:
    return raw[-4000:].decode("utf-8", "replace")
