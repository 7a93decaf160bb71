"""The other machine as an install sees it: one step of ours after the other is done there.

No word of a host or a person becomes part of a command. Our own modules travel as data too: what runs there
is always the same few lines, which take them from standard input.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from engine_host.core.errors import HostError
from engine_host.core.outside import json_text
from engine_host.protocol.errors import Fix, Reason
from engine_host.remote.install.answers import MachineAnswer
from engine_host.remote.install.there.steps import MARK
from engine_host.remote.run import Interpreter, RemoteOutcome, RemoteScript, Runner

_SCRIPT = RemoteScript(
    "install",
    Interpreter.PYTHON,
    """
import json, sys, types
stream = sys.stdin.buffer
for name, text in json.loads(stream.read(int(stream.readline()))):
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, name, "exec"), module.__dict__)
sys.exit(module.main())
""",
    held=True,
)
# Each after those that it imports.
_MODULES = ("places", "programs", "service", "probing", "removal", "releases", "steps")
_THERE = Path(__file__).parent / "there"
_NO_PYTHON = 127
_LONGEST_ANSWER = 4 << 20
_SECONDS = {"probe": 180.0, "environment": 1800.0, "switch": 420.0, "demo": 600.0, "uninstall": 480.0}
_USUAL = 120.0
Answer = TypeVar("Answer", bound=MachineAnswer)


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine that is connected, by its name here."""

    name: str
    runner: Runner


async def do(machine: Machine, step: str, kind: type[Answer], **asked: Any) -> Answer:
    """Do a step there; its answer. Raises HostError, also for an answer of another kind."""
    request = json.dumps({**asked, "step": step}).encode()
    data = _sized(_modules()) + _sized(request)
    said = await machine.runner.run(machine.name, _SCRIPT, data, seconds=_SECONDS.get(step, _USUAL))
    if said.exit == _NO_PYTHON and MARK.encode() not in said.stdout:
        raise HostError(
            Reason.INSTALL_FAILED,
            f"There is no Python on {machine.name}.",
            cause="The engine host needs Python 3.11, 3.12 or 3.13, and no python3 is on the PATH there.",
            fix=Fix(text="Have it installed there.", command="sudo apt-get install -y python3 python3-venv"),
            evidence={"stderr": said.stderr},
        )
    answer = _answer(machine.name, step, said)
    if "done" not in answer:
        raise _failed(machine.name, answer)
    try:
        return kind.model_validate(answer["done"])
    except ValidationError as error:
        raise HostError(
            Reason.INSTALL_FAILED,
            f"{machine.name} answered the step “{step}” in a form that is not known.",
            cause="Something there answers in the place of our program.",
            evidence={"fields": [".".join(map(str, one["loc"])) for one in error.errors()[:10]]},
        ) from error


def _sized(content: bytes) -> bytes:
    return b"%d\n%s" % (len(content), content)


@cache
def _modules() -> bytes:
    package = f"{__package__}.there"
    texts = [(f"{package}.{name}", (_THERE / f"{name}.py").read_text(encoding="utf-8")) for name in _MODULES]
    return json.dumps(texts).encode()


def _answer(name: str, step: str, said: RemoteOutcome) -> dict[str, Any]:
    marked = [line for line in said.stdout.splitlines() if line.startswith(MARK.encode())]
    try:
        if not marked or len(marked[-1]) > _LONGEST_ANSWER:
            raise ValueError("no answer")
        return json_text.parse_object(marked[-1][len(MARK) :])
    except ValueError as error:
        raise HostError(
            Reason.INSTALL_FAILED,
            f"{name} gave no answer to the step “{step}”.",
            cause="It took too long." if said.timed_out else "What was run there ended in the middle.",
            fix="Run the same command again: it goes on from what is there.",
            evidence={"exit": said.exit, "stderr": said.stderr, "stdout": _text(said.stdout)},
        ) from error


_REASONS = {
    "bad_request": Reason.BAD_REQUEST,
    "conflict": Reason.CONFLICT,
    "disk_full": Reason.DISK_FULL,
    "download_failed": Reason.DOWNLOAD_FAILED,
    "install_failed": Reason.INSTALL_FAILED,
    "not_found": Reason.NOT_FOUND,
    "not_writable": Reason.NOT_WRITABLE,
    "verification_failed": Reason.VERIFICATION_FAILED,
}
_FIXES = {
    Reason.CONFLICT: "End that one there first, or wait for it; then run the same command again.",
    Reason.DISK_FULL: "Free some space there and run the same command again.",
    Reason.DOWNLOAD_FAILED: "Send the packages from here: sndr host install {name} --offline",
    Reason.NOT_WRITABLE: "Make it writable for the user that ssh logs in as.",
}


def _failed(name: str, answer: dict[str, Any]) -> HostError:
    evidence = answer.get("evidence")
    evidence = evidence if isinstance(evidence, dict) else {}
    reason = _REASONS.get(str(answer.get("failed")), Reason.INSTALL_FAILED)
    lines = evidence.get("lines") or evidence.get("log") or []
    seen = str(lines[-1]) if isinstance(lines, list) and lines else str(evidence.get("error", ""))
    message = f"{name}: {answer.get('message', 'A step failed.')}"
    if evidence.get("back_on"):
        message += f" {evidence['back_on']}, which ran before, runs again."
    fix = _FIXES.get(reason, "Look at the lines, mend what they name, and run the same command again.")
    return HostError(reason, message, cause=seen, fix=fix.format(name=name), evidence=evidence)


def _text(raw: bytes) -> str:
    return raw[-4000:].decode("utf-8", "replace")
