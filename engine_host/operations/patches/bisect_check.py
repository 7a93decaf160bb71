"""The check by which a bisection judges a start: a built-in one, or a command of the person's."""

import io
import os
import shlex
import shutil
from dataclasses import dataclass
from typing import Any

import httpx

from engine_host.core.errors import HostError
from engine_host.core.outside import answers, files
from engine_host.engines.process.tool import ToolError, run_tool
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr
from engine_host.protocol.patches import BisectCheck

_ANSWER = 600.0
_TOKENS = 48
_LONGEST_ANSWER = 4 << 20
_SAID = ("reasoning", "reasoning_content", "content")
# A shell's "cannot be run" and "not found", and what `git bisect run` takes for "cannot be judged".
_NO_JUDGEMENT = range(125, 256)
_SHOWN = 160


@dataclass(frozen=True)
class Subject:
    """An engine to be judged; `socket` is its own, `endpoint` the public base URL."""

    name: str
    socket: str
    endpoint: str
    key: str | None = None


@dataclass(frozen=True)
class Judgement:
    """The result of a check; `answer` is what the model said, where it was asked."""

    passed: bool
    why: str
    answer: str | None = None


class StartCheck:
    """Judges starts; `same_answer` remembers the answer of the first, the one without patches."""

    def __init__(self, wanted: BisectCheck) -> None:
        """Raises HostError(bad_request) when the command or its folder cannot be found."""
        self._wanted = wanted
        self._reference: str | None = None
        self._folder = files.expanded(wanted.folder or "~")
        if wanted.command is None:
            return
        if not self._folder.is_dir():
            raise HostError(
                Reason.BAD_REQUEST,
                tr("The folder {folder} of the check is not there.", folder=self._folder),
                cause="It was moved or deleted, or is not on the machine of the engine host.",
                fix="Name the folder that the command runs in.",
                evidence={"folder": str(self._folder)},
            )
        program = wanted.command[0]
        path = str(self._folder / program) if os.sep in program else program
        if shutil.which(path) is None:
            raise HostError(
                Reason.BAD_REQUEST,
                tr("The check {program} cannot be run.", program=program),
                cause="There is no such program, or it is not executable.",
                fix="Give a program with its arguments; no shell is in between.",
                evidence={"command": list(wanted.command), "folder": str(self._folder)},
            )

    async def judge(self, subject: Subject) -> Judgement:
        """Look at an engine that is ready.

        Raises HostError(bad_request) when the command says that it cannot judge (125 and above).
        """
        if self._wanted.command is not None:
            return await self._run(self._wanted.command, subject)
        if self._wanted.builtin == "starts":
            return Judgement(True, "it started")
        said = await _ask(subject, self._wanted.prompt)
        if not said.passed or self._wanted.builtin == "answers":
            return said
        if self._reference is None:
            self._reference = said.answer
        if said.answer == self._reference:
            return said
        return Judgement(False, f"another answer: {said.why}", said.answer)

    async def _run(self, command: tuple[str, ...], subject: Subject) -> Judgement:
        environment = {
            **os.environ,
            "SNDR_ENDPOINT": subject.endpoint,
            "SNDR_SOCKET": subject.socket,
            "SNDR_MODEL": subject.name,
            **({"SNDR_API_KEY": subject.key} if subject.key else {}),
        }
        try:
            tail = await run_tool(command, cwd=self._folder, environment=environment, log=io.StringIO())
        except ToolError as error:
            last = next((line for line in reversed(error.tail) if line.strip()), "")
            if error.code in _NO_JUDGEMENT:
                raise HostError(
                    Reason.BAD_REQUEST,
                    tr("The check could not judge a start: it ended with {code}.", code=error.code),
                    cause=last,
                    fix="Exit with 0 when all is well and with 1 to 124 when it is not.",
                    evidence={"command": shlex.join(command), "code": error.code, "tail": error.tail},
                ) from error
            return Judgement(False, _short(f"ended with {error.code}", last))
        return Judgement(True, _short("ended with 0", tail[-1] if tail else ""))


async def _ask(subject: Subject, prompt: str) -> Judgement:
    """One short answer at temperature 0, from the engine's own socket."""
    body: dict[str, Any] = {
        "model": subject.name,
        "messages": [{"role": "user", "content": prompt}],
        "temperature": 0,
        "max_tokens": _TOKENS,
    }
    transport = httpx.AsyncHTTPTransport(uds=subject.socket, verify=False, trust_env=False)
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://engine", timeout=_ANSWER) as http:
            response = await answers.fetch(
                http, "/v1/chat/completions", most=_LONGEST_ANSWER, seconds=_ANSWER, json=body
            )
    except (httpx.HTTPError, answers.AnswerError) as error:
        return Judgement(False, f"no answer: {type(error).__name__} {error}".strip())
    if not response.is_success:
        return Judgement(False, _short(f"HTTP {response.status}", response.text))
    try:
        message = response.object()["choices"][0]["message"]
        said = "".join(str(message.get(name) or "") for name in _SAID)
    except (ValueError, LookupError, TypeError, AttributeError):
        return Judgement(False, _short("no answer of a chat", response.text))
    if not said.strip():
        return Judgement(False, "an empty answer", said)
    return Judgement(True, _short("it answered", said), said)


def _short(what: str, detail: str) -> str:
    line = " ".join(detail.split())
    return f"{what}: {line[:_SHOWN]}{'…' if len(line) > _SHOWN else ''}" if line else what
