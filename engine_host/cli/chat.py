"""`sndr chat`: talk to the model that runs."""

import sys
import time
from typing import Any

import click

from engine_host.cli.chats.sampling import sampling_options
from engine_host.cli.output import Exit, Output, command, echo, problem_lines
from engine_host.cli.start.host import connected_for_model
from engine_host.cli.start.running import only_one
from engine_host.client.chat_stream import Answer, collect
from engine_host.client.sync import ControlClient
from engine_host.core.errors import HostError
from engine_host.core.likely_causes import none_started
from engine_host.protocol.endpoint.connect import EndpointModel
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations import table as ops

_CHOOSE = "Choose one with --model NAME."
_HELP = """/new           forget what was said
/system TEXT   a new conversation with this system message; without TEXT say which there is
/exit          end the chat (also /quit, Ctrl+D)
Ctrl+C         stop an answer
A text that begins with / is sent with a space in front."""


@click.command()
@click.argument("text", required=False)
@click.option("--model", help="Which model, or route (needed where several run).")
@click.option("--system", help="A system message in front.")
@sampling_options
@click.option("--raw", is_flag=True, help="Complete TEXT as it is, without the model's chat template.")
@command("sndr chat 'What is a list comprehension?'", "git diff | sndr chat --system 'Review this change.'")
def chat(
    out: Output,
    /,
    text: str | None,
    model: str | None,
    system: str | None,
    raw: bool,
    **sampling: float | None,
) -> Exit | None:
    """Ask TEXT, or talk line by line without one; '-' or a pipe reads standard input.

    Ctrl+C stops an answer; Ctrl+D or /exit ends the chat, and /help lists what else there is. TTFT and speed
    go to standard error.
    """
    if raw and system:
        raise click.UsageError("--system has no meaning with --raw: there is no template to put it in.")
    options: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
    options |= {name: value for name, value in sampling.items() if value is not None}
    with connected_for_model() as client:
        options["model"] = model or _only(out, client)
        conversation = _Conversation(client, options, system, raw)
        if text == "-" or (text is None and not sys.stdin.isatty()):
            text = sys.stdin.read()
        if text is None:
            return _interactive(out, conversation)
        # Without a template, a space is a text to go on from.
        if not (text if raw else text.strip()):
            raise click.UsageError("The message is empty. Give a text, or none at all to talk line by line.")
        answer = conversation.say(out, text)
    if out.as_json:
        out.record(answer.as_json())
    return Exit.INTERRUPTED if answer.interrupted else None


class _Conversation:
    """The messages so far, and one client."""

    def __init__(self, client: ControlClient, options: dict[str, Any], system: str | None, raw: bool) -> None:
        self._client = client
        self._options = options
        self._raw = raw
        self._messages = [{"role": "system", "content": system}] if system else []

    @property
    def model(self) -> str:
        """Return the model that answers."""
        return str(self._options["model"])

    @property
    def system(self) -> str:
        """Return the system message; empty without one."""
        return next((one["content"] for one in self._messages if one["role"] == "system"), "")

    def begin_anew(self, system: str) -> None:
        """Forget what was said; `system` stands in front of what comes."""
        self._messages = [{"role": "system", "content": system}] if system else []

    def say(self, out: Output, text: str) -> Answer:
        """Send a turn and show the answer. Raises HostError."""
        if self._raw:
            path, body = "/openai/v1/completions", {**self._options, "prompt": text}
        else:
            messages = [*self._messages, {"role": "user", "content": text}]
            path, body = "/openai/v1/chat/completions", {**self._options, "messages": messages}
        stream = self._client.stream(path, body)
        try:
            answer = collect(stream, None if out.as_json else _show, time.monotonic())
        finally:
            # Closing the stream is what cancels the request.
            stream.close()
        if not out.as_json:
            echo()
        for call in answer.tool_calls:
            function = call.get("function") or {}
            out.note(f"[tool call] {function.get('name') or ''}{function.get('arguments') or ''}")
        if answer.interrupted:
            out.note("(stopped)")
        elif answer.finish == "length":
            limit = self._options.get("max_tokens")
            out.note(f"(cut off: {f'--max-tokens {limit}' if limit else 'the context is full'})")
        if speed := answer.speed():
            out.note(speed)
        if not self._raw:
            self._messages = [*messages, {"role": "assistant", "content": answer.text}]
        return answer


def _show(text: str) -> None:
    echo(text, nl=False)
    sys.stdout.flush()


def _obeyed(out: Output, conversation: _Conversation, line: str) -> bool:
    """Carry out a command of the chat, and say what came of it; False for the one that ends it."""
    word, _, rest = line.strip().partition(" ")
    if word in {"/exit", "/quit"}:
        return False
    if word == "/help":
        out.note(_HELP)
    elif word == "/new":
        conversation.begin_anew(conversation.system)
        out.note("(a new conversation)")
    elif word == "/system" and rest.strip():
        conversation.begin_anew(rest.strip())
        out.note("(a new conversation with this system message)")
    elif word == "/system":
        out.note(f"({conversation.system or 'no system message'})")
    else:
        out.note(
            f"There is no {word[:40]}; /help lists what there is. With a space in front it is sent as text."
        )
    return True


def _interactive(out: Output, conversation: _Conversation) -> Exit | None:
    import readline  # noqa: F401  # Gives input() history and editing.

    if not out.as_json:
        out.note(f"{conversation.model} answers. Ctrl+D or /exit ends the chat, /help lists the commands.")
    while True:
        try:
            text = input("> " if not out.as_json else "")
        except EOFError:
            if not out.as_json:
                echo()
            return None
        except KeyboardInterrupt:
            echo("\n(Ctrl+D ends the chat)", err=True)
            continue
        if not text.strip():
            continue
        if text.startswith("/") and not out.as_json:
            if not _obeyed(out, conversation, text):
                return None
            continue
        try:
            answer = conversation.say(out, text)
        except HostError as error:
            if error.reason in {Reason.HOST_GONE, Reason.HOST_UNREACHABLE}:
                raise
            echo("\n".join(problem_lines(error.problem)), err=True)
            continue
        if out.as_json:
            out.record(answer.as_json())


def _only(out: Output, client: ControlClient) -> str:
    """Return the one engine that runs, or else the one model that is offered. Raises HostError."""
    from engine_host.protocol.engines import EngineState

    engines = client.call(ops.ENGINES).engines
    serving = [engine for engine in engines if engine.state in {EngineState.READY, EngineState.BUSY}]
    found = only_one(serving, _CHOOSE)
    if found is not None:
        return found.name
    offered = _offered(client)
    if offered is not None:
        if offered.on_demand:
            out.note(f"No model runs; the request loads {offered.id}.")
        return offered.id
    newest = max(engines, key=lambda engine: engine.created_at, default=None)
    if newest is not None and newest.problem is not None and newest.state is EngineState.FAILED:
        raise HostError(
            Reason.NO_ENGINE_RUNS,
            tr("No model is ready: {newest} has failed.", newest=newest.name),
            cause=newest.problem.message,
            fix=Fix(
                text=tr(
                    "Its log is shown by `sndr logs {newest}`; start it again in another terminal.",
                    newest=newest.id,
                ),
                command=newest.plan.command,
            ),
            evidence={"engine": newest.id},
        )
    raise HostError(
        Reason.NO_ENGINE_RUNS,
        "No model is ready.",
        cause=none_started(),
        fix="Start one in another terminal: `sndr run --demo`.",
    )


def _offered(client: ControlClient) -> EndpointModel | None:
    """Return the only model that a route or a request's load offers; None without any.

    Raises click.UsageError for several, and for one that another company answers: nobody named it.
    """
    models = [model for model in client.call(endpoint_ops.ENDPOINT_MODELS).models if model.chat]
    if len(models) > 1:
        names = ", ".join(model.id for model in models)
        raise click.UsageError(f"No engine runs, and several models are offered: {names}. {_CHOOSE}")
    if models and models[0].provider is not None:
        raise click.UsageError(
            f"No engine runs, and {models[0].id} is answered by {models[0].provider}: what you say would "
            f"leave this machine. Name it to mean that: sndr chat --model {models[0].id}"
        )
    return models[0] if models else None
