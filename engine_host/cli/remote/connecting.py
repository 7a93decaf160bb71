"""Wait for a connection, and answer what ssh asks meanwhile at this terminal."""

import getpass
import math
import sys
import time
from collections.abc import Callable

from engine_host.cli.output import Output, echo
from engine_host.cli.text.waiting import NOTHING_DONE, told_if_interrupted
from engine_host.client.sync import ControlClient
from engine_host.core.errors import HostError
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.operations import remote_hosts as ops
from engine_host.protocol.remote.hosts import (
    AnswerSshQuestion,
    RemoteHost,
    RemoteHostState,
    RemoteMode,
    SshQuestion,
    SshQuestionKind,
)

_LOOK = 0.1
_DONE = {RemoteHostState.CONNECTED, RemoteHostState.FAILED, RemoteHostState.DISCONNECTED}


@told_if_interrupted(NOTHING_DONE)
def connect(
    client: ControlClient, name: str, out: Output, seconds: float = 120.0, lost: float | None = None
) -> RemoteHost:
    """Have a host connected and return it; questions of ssh are asked here.

    `lost` is for how many seconds one that was lost is waited for; otherwise its next try is.

    Raises HostError with the reason why it is not: of what is tried again too, which goes on by itself.
    """
    shown = client.call(ops.CONNECT_HOST, name=name)
    deadline = time.monotonic() + seconds
    given_up = math.inf if lost is None else time.monotonic() + lost
    told = ""
    while shown.state not in _DONE and not _is_tried_again(shown):
        if time.monotonic() > deadline:
            raise HostError(
                Reason.SSH_UNREACHABLE,
                tr("{name} was not connected within {seconds:.0f} seconds.", name=name, seconds=seconds),
                cause=shown.sentence,
                fix=Fix(text="It goes on by itself; look again.", command=f"sndr host connect {name}"),
            )
        if time.monotonic() > given_up and shown.state is RemoteHostState.RECONNECTING and shown.problem:
            raise HostError.from_problem(shown.problem)
        if shown.sentence != told:
            told = shown.sentence
            out.note(told)
        for question in client.call(ops.SSH_QUESTIONS).questions:
            if question.host == name and question.notice:
                # What it waits for is done elsewhere: the state says it, and this goes on looking.
                deadline = time.monotonic() + seconds
            elif question.host == name:
                _answer(client, question, out)
                deadline = time.monotonic() + seconds
        time.sleep(_LOOK)
        shown = client.call(ops.REMOTE_HOST, name=name)
    if shown.state is RemoteHostState.CONNECTED:
        return shown
    if shown.problem is not None:
        raise HostError.from_problem(shown.problem)
    raise HostError(
        Reason.SSH_LOST,
        tr("{name} is not connected: {sentence}", name=name, sentence=shown.sentence),
        fix=Fix(text="Connect it again.", command=f"sndr host connect {name}"),
    )


@told_if_interrupted(NOTHING_DONE)
def looked_for(client: ControlClient, shown: RemoteHost, seconds: float = 10.0) -> RemoteHost:
    """Return a connected host once it is known whether its engine host answers, or after that time."""
    deadline = time.monotonic() + seconds
    while (
        shown.mode is RemoteMode.ENGINE_HOST
        and shown.state is RemoteHostState.CONNECTED
        and shown.control_socket is None
        and shown.engine_host_problem is None
        and time.monotonic() < deadline
    ):
        time.sleep(_LOOK)
        shown = client.call(ops.REMOTE_HOST, name=shown.name)
    return shown


def _is_tried_again(shown: RemoteHost) -> bool:
    return shown.state is RemoteHostState.RECONNECTING and shown.next_try_at is not None


def _answer(client: ControlClient, question: SshQuestion, out: Output) -> None:
    try:
        answer = _asked(question) if not out.as_json and sys.stdin.isatty() else None
    except (EOFError, KeyboardInterrupt):
        _tell(client, question, AnswerSshQuestion(accept=False))
        raise
    if answer is None:
        _tell(client, question, AnswerSshQuestion(accept=False))
        raise HostError(
            Reason.HOST_KEY_UNKNOWN if question.kind is SshQuestionKind.HOST_KEY else Reason.SSH_AUTH_FAILED,
            tr(
                "ssh asks for an answer ({kind}), and nobody is there for it.",
                kind=question.kind.value.replace("_", " "),
            ),
            cause=question.text.strip(),
            fix=Fix(text="Run it at a terminal.", command=f"sndr host connect {question.host}"),
            evidence={"fingerprint": question.fingerprint} if question.fingerprint else {},
        )
    _tell(client, question, answer)


def _asked(question: SshQuestion) -> AnswerSshQuestion:
    if question.again:
        echo("That was not right.", err=True)
    text = question.text.strip()
    if question.kind is SshQuestionKind.HOST_KEY:
        echo(text, err=True)
        return AnswerSshQuestion(accept=_yes("Is this the fingerprint of that machine? Type yes or no: "))
    if question.kind is SshQuestionKind.CONFIRM:
        echo(text, err=True)
        return AnswerSshQuestion(accept=_yes("Type yes or no: "))
    ask: Callable[[str], str] = getpass.getpass if question.secret else input
    echo(f"{question.host}: {text}", err=True)
    return AnswerSshQuestion(accept=True, answer=ask(""))


def _yes(prompt: str) -> bool:
    while (said := input(prompt).strip().lower()) not in ("yes", "no", "n"):
        pass
    return said == "yes"


def _tell(client: ControlClient, question: SshQuestion, answer: AnswerSshQuestion) -> None:
    try:
        client.call(ops.ANSWER_SSH, answer, id=question.id)
    except HostError as error:
        # ssh gave up meanwhile, or somebody answered in the window.
        if error.reason is not Reason.NOT_FOUND:
            raise
