"""Questions of ssh to a person: taken from its askpass, told to whoever watches, answered by one of them."""

import asyncio
import contextlib
import json
import re
import secrets
import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engine_host.core import atomic_file
from engine_host.core.bounds.cut_text import cut_text
from engine_host.core.errors import HostError
from engine_host.core.outside import json_text
from engine_host.core.processes.own_programs import OwnProgram, command_of
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.remote.hosts import AnswerSshQuestion, SshQuestion, SshQuestionKind

_LARGEST = 64 << 10
_LONGEST_TEXT = 4_000
_PATIENCE = 600.0
"""Seconds that a question waits for a person; most servers give up before that."""
# The words of OpenSSH; it is not translated.
_HOST_KEY = re.compile(
    r"authenticity of host .* can't be established|Please type 'yes', 'no' or the finger", re.S
)
_FINGERPRINT = re.compile(r"^(\S+) key fingerprint is ([A-Za-z0-9]+:[A-Za-z0-9+/=:]+)\.?$", re.MULTILINE)
_PASSPHRASE = re.compile(r"^(Enter passphrase for |Enter PIN for )")
_NOTICE = "none"
"""The hint of what is shown and not asked: a security key is to be touched."""
_PASSWORD = re.compile(r"password: ?$", re.IGNORECASE)
# Started by ssh, which takes a program and no arguments; what differs by attempt is in the environment.
_PROGRAM = '#!/bin/sh\nexec {} "$1"\n'


@dataclass
class Attempt:
    """One try to connect, and what was asked in it."""

    host: str
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    asked: list[SshQuestion] = field(default_factory=list)
    refused: set[SshQuestionKind] = field(default_factory=set)
    waiting: int = 0
    on_change: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class _Waiting:
    question: SshQuestion
    answer: asyncio.Future[AnswerSshQuestion]


class QuestionDesk:
    """Takes questions of ssh at a socket; answers are passed on and kept nowhere."""

    def __init__(self, socket: Path, program: Path, publish: Callable[[SshQuestion, bool], None]) -> None:
        """`program` is the file that ssh starts; `publish` is told of each question, open or not any more."""
        self.socket = socket
        self._program = program
        self._publish = publish
        self._attempts: dict[str, Attempt] = {}
        self._waiting: dict[str, _Waiting] = {}
        self._server: asyncio.Server | None = None
        self._opening = asyncio.Lock()

    @property
    def waiting(self) -> tuple[SshQuestion, ...]:
        """The questions that wait, oldest first."""
        return tuple(one.question for one in self._waiting.values())

    async def environment(self, attempt: Attempt) -> Mapping[str, str]:
        """Return what ssh has to find in its environment to ask here. Raises what saving raises."""
        async with self._opening:
            if self._server is None:
                await self._open()
        self._attempts[attempt.id] = attempt
        return {
            "SSH_ASKPASS": str(self._program),
            "SSH_ASKPASS_REQUIRE": "force",
            "SNDR_ASKPASS_SOCKET": str(self.socket),
            "SNDR_ASKPASS_ATTEMPT": attempt.id,
        }

    async def _open(self) -> None:
        program = _PROGRAM.format(shlex.join(command_of(OwnProgram.ASKPASS)))
        await asyncio.to_thread(atomic_file.write, self._program, program, 0o700)
        with contextlib.suppress(OSError):
            self.socket.unlink()
        # The host's umask makes it this user's alone.
        self._server = await asyncio.start_unix_server(self._serve, self.socket, limit=_LARGEST)
        self.socket.chmod(0o600)

    def end(self, attempt: Attempt) -> None:
        """Take no more questions of an attempt; those that wait are refused."""
        self._attempts.pop(attempt.id, None)
        for one in list(self._waiting.values()):
            if one.question.host == attempt.host and not one.answer.done():
                one.answer.set_result(AnswerSshQuestion(accept=False))

    def answer(self, question_id: str, answer: AnswerSshQuestion) -> None:
        """Pass a person's answer on. Raises HostError: not_found, bad_request for several lines."""
        found = self._waiting.get(question_id)
        if found is None or found.answer.done():
            look = "sndr host list" if found is None else f"sndr host connect {found.question.host}"
            raise HostError(
                Reason.NOT_FOUND,
                "ssh does not wait for that answer any more.",
                cause="Somebody answered it, or the connection ended.",
                fix=Fix(text="See what it asks now.", command=look),
            )
        if any(letter in answer.answer for letter in "\n\r\0"):
            raise HostError(Reason.BAD_REQUEST, "An answer for ssh is one line.", fix="Type it anew.")
        found.answer.set_result(answer)

    async def close(self) -> None:
        """Refuse everything and close the socket."""
        for attempt in list(self._attempts.values()):
            self.end(attempt)
        server, self._server = self._server, None
        if server is not None:
            server.close()
            with contextlib.suppress(OSError):
                self.socket.unlink()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            told = await self._told(reader)
            if told is not None:
                writer.write(json.dumps({"accept": told.accept, "answer": told.answer}).encode() + b"\n")
                await writer.drain()
        except OSError:
            pass  # ssh ended it meanwhile.
        finally:
            writer.close()

    async def _told(self, reader: asyncio.StreamReader) -> AnswerSshQuestion | None:
        """Return the answer to what comes in; None for what is no question of ours, and when ssh is gone."""
        try:
            asked = json_text.parse_object(await reader.readline())
        except ValueError:
            return None
        attempt = self._attempts.get(str(asked.get("attempt")))
        if attempt is None:
            return None
        question = question_of(attempt, str(asked.get("prompt", "")), str(asked.get("hint", "")))
        attempt.asked.append(question)
        future = asyncio.get_running_loop().create_future()
        self._waiting[question.id] = _Waiting(question, future)
        attempt.waiting += 1
        attempt.on_change()
        self._publish(question, True)
        gone = asyncio.create_task(_ended(reader))
        try:
            await asyncio.wait({future, gone}, timeout=_PATIENCE, return_when=asyncio.FIRST_COMPLETED)
            answer = future.result() if future.done() else AnswerSshQuestion(accept=False)
        finally:
            gone.cancel()
            del self._waiting[question.id]
            attempt.waiting -= 1
            self._publish(question, False)
            attempt.on_change()
        if not answer.accept:
            if not question.notice:
                attempt.refused.add(question.kind)
        elif question.kind is SshQuestionKind.HOST_KEY:
            # ssh compares it with the key: what was shown is what is accepted.
            return AnswerSshQuestion(accept=True, answer=question.fingerprint or "yes")
        elif question.kind is SshQuestionKind.CONFIRM:
            return AnswerSshQuestion(accept=True)
        return answer


async def _ended(reader: asyncio.StreamReader) -> AnswerSshQuestion:
    """Wait until ssh does not want to know any more."""
    await reader.read()
    return AnswerSshQuestion(accept=False)


def question_of(attempt: Attempt, prompt: str, hint: str) -> SshQuestion:
    """Return a prompt of ssh as a question; `hint` is what it says beside it (SSH_ASKPASS_PROMPT)."""
    shown = _FINGERPRINT.search(prompt)
    if _HOST_KEY.search(prompt):
        kind = SshQuestionKind.HOST_KEY
    elif hint in ("confirm", _NOTICE):
        kind = SshQuestionKind.CONFIRM
    elif _PASSPHRASE.search(prompt):
        kind = SshQuestionKind.PASSPHRASE
    elif _PASSWORD.search(prompt):
        kind = SshQuestionKind.PASSWORD
    else:
        kind = SshQuestionKind.OTHER
    text = cut_text(prompt, _LONGEST_TEXT)
    notice = kind is SshQuestionKind.CONFIRM and hint == _NOTICE
    return SshQuestion(
        id=secrets.token_hex(8),
        host=attempt.host,
        kind=kind,
        text=text,
        notice=notice,
        key_type=shown[1] if shown else None,
        fingerprint=shown[2] if shown else None,
        secret=kind not in (SshQuestionKind.HOST_KEY, SshQuestionKind.CONFIRM),
        again=not notice and any(one.text == text for one in attempt.asked),
        asked_at=time.time(),
    )
