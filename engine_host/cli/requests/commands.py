"""`sndr requests`: list, look into, cancel and follow the requests to the endpoint."""

import math
from pathlib import Path

import click

from engine_host.cli.output import Exit, Output, command, echo
from engine_host.cli.requests.lines import (
    capture_lines,
    captured_lines,
    conversation_lines,
    request_line,
    request_lines,
    request_table,
)
from engine_host.cli.start.host import connected
from engine_host.cli.text.whole_help import WholeHelp
from engine_host.client.request_export import write_requests
from engine_host.client.sync import ControlClient
from engine_host.core.errors import HostError
from engine_host.protocol.endpoint.requests import (
    MOST_LISTED_TURNS,
    CapturedRequest,
    Conversation,
    ConversationQuery,
    RequestDetail,
    RequestQuery,
    StartCapture,
)
from engine_host.protocol.engines import Request, RequestState
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.events import EngineRequestEvent
from engine_host.protocol.language import tr
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations import table as ops

_NONE = "No requests yet. Every request to the endpoint appears here: from an editor, an agent, curl or Chat."
_NO_CONVERSATION = (
    "No conversations yet. Each chat through the endpoint is a turn of one. From the second turn on, this\n"
    "says how much of the prompt was reused, and where it parts from the turn before."
)
_WRITTEN_SECONDS = 5.0
"""Between two lines that say only how much more of an answer is written; records come each second."""
_FOLLOW = click.option("-f", "--follow", is_flag=True, help="Print requests as they come and change.")
_ENGINE = click.option("--engine", metavar="ENGINE", help="Of one engine, by its id or public name.")
_LIMIT = click.option("-n", "--last", type=click.IntRange(1, 500), default=20, show_default=True)


@click.group(cls=WholeHelp, invoke_without_command=True)
@_FOLLOW
@_ENGINE
@_LIMIT
@command("sndr requests")
def requests(out: Output, follow: bool, engine: str | None, last: int) -> Exit | None:
    """Say what the endpoint is asked: by whom, how fast it answers, and what was reused.

    Times are those of the endpoint: `first` is from a request to the first piece of its answer.
    """
    if click.get_current_context().invoked_subcommand is None:
        _list(out, follow, engine, last)
    return None


@requests.command("list")
@_FOLLOW
@_ENGINE
@_LIMIT
@command("sndr requests list --last 20", "sndr requests list --follow")
def show_list(out: Output, follow: bool, engine: str | None, last: int) -> Exit | None:
    """List live and recent requests, the newest last.

    Times are those of the endpoint: `first` is from a request to the first piece of its answer.
    """
    _list(out, follow, engine, last)
    return None


@requests.command("show")
@click.argument("request")
@command("sndr requests show 3f2a")
def show(out: Output, request: str) -> Exit | None:
    """Print all that is known of REQUEST, an id or the beginning of one."""
    with connected() as client:
        detail = client.call(endpoint_ops.REQUEST, id=_whole_id(client, request))
    texts = captured_lines(detail.captured) if detail.captured is not None else []
    out.result(detail, [*request_lines(detail.request, detail.turn), *texts])
    return None


@requests.command("capture")
@click.option(
    "--minutes", type=click.IntRange(1, 1440), help="Keep texts for so long from now, then forget them."
)
@click.option("--off", is_flag=True, help="Keep no more, and forget those that are kept.")
@command("sndr requests capture --minutes 10", "sndr requests capture --off")
def capture(out: Output, minutes: int | None, off: bool) -> Exit | None:
    """Keep the texts of requests and answers for a while, or say whether they are kept.

    They stay in the host's memory, 64 MiB at most, without keys and tokens, and go when that time ends, with
    the host, or by `--off`.
    Only `sndr requests export` ever writes them to disk. `sndr requests show ID` prints them.
    """
    if off and minutes is not None:
        raise click.UsageError("Give either --minutes or --off.")
    with connected() as client:
        if off:
            state = client.call(endpoint_ops.STOP_CAPTURE)
        elif minutes is not None:
            state = client.call(endpoint_ops.START_CAPTURE, StartCapture(minutes=minutes))
        else:
            state = client.call(endpoint_ops.CAPTURE_STATE)
    out.result(state, capture_lines(state))
    return None


@requests.command("curl")
@click.argument("request")
@command("sndr requests curl 3f2a")
def curl(out: Output, request: str) -> Exit | None:
    """Print REQUEST as a curl command, with the key from the variable SNDR_API_KEY."""
    with connected() as client:
        detail = client.call(endpoint_ops.REQUEST, id=_whole_id(client, request))
    captured = _captured(detail)
    if captured.curl is None:
        raise HostError(
            Reason.CONFLICT,
            "This request was not kept whole, so it cannot be sent again.",
            cause=tr("It has {bytes:,} bytes.", bytes=captured.asked.bytes),
            fix=Fix(text="See it.", command=f"sndr requests show {detail.request.id}"),
        )
    out.result({"curl": captured.curl}, captured.curl, verbatim=True)
    return None


@requests.command("export")
@click.argument("request", required=False)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), required=True)
@click.option("--all", "every", is_flag=True, help="Every request whose texts are kept.")
@click.option("--replace", is_flag=True, help="Replace the file if it is there.")
@command(
    "sndr requests export 3f2a --output request.json", "sndr requests export --all --output requests.json"
)
def export(out: Output, request: str | None, output: Path, every: bool, replace: bool) -> Exit | None:
    """Write REQUEST with its texts to a JSON file that only you can read."""
    if every == (request is not None):
        raise click.UsageError("Give a request, or --all.")
    if output.exists() and not replace:
        raise HostError(
            Reason.CONFLICT,
            tr("{output} is there already.", output=output),
            cause="A file is replaced only where that is asked for.",
            fix="Choose another name, or add --replace.",
        )
    with connected() as client:
        known = client.call(endpoint_ops.REQUESTS, RequestQuery()).requests
        chosen = [one.id for one in known if one.captured] if every else [_whole_id(client, request or "")]
        details = [client.call(endpoint_ops.REQUEST, id=one) for one in chosen]
    for detail in details:
        _captured(detail)
    if not details:
        raise _nothing_kept(tr("No request's texts are kept."))
    write_requests(output, details)
    number = "1 request" if len(details) == 1 else f"{len(details)} requests"
    out.result({"path": str(output), "requests": len(details)}, f"{output}: {number}, readable by you alone.")
    return None


@requests.command("cancel")
@click.argument("request")
@command("sndr requests cancel 3f2a")
def cancel(out: Output, request: str) -> Exit | None:
    """Cancel REQUEST; the engine stops working on it."""
    with connected() as client:
        ended = client.call(endpoint_ops.CANCEL_REQUEST, id=_whole_id(client, request))
    out.result(ended, f"{ended.id}: {ended.state.value}.")
    return None


@requests.command("prefix")
@click.argument("conversation", required=False)
@click.option(
    "-n", "--last", type=click.IntRange(1, 200), default=10, show_default=True, help="Turns of each."
)
@command("sndr requests prefix")
def prefix(out: Output, conversation: str | None, last: int) -> Exit | None:
    """Say how much of each conversation's prompt was reused, where it was not, and what that cost.

    CONVERSATION is an id, or the beginning of one or of a session's own name. Hashes of a prompt's parts are
    kept for this, never their text.
    """
    every = conversation is None
    listed = ConversationQuery(turns=min(last, MOST_LISTED_TURNS) if every else 0)
    with connected() as client:
        page = client.call(endpoint_ops.CONVERSATIONS, listed)
        chosen = tuple(one for one in page.conversations if every or _is_meant(one, conversation or ""))
        if not every and not chosen:
            raise HostError(
                Reason.NOT_FOUND,
                tr("There is no conversation {conversation}.", conversation=conversation),
                cause="The newest ones are known, and only while the host runs.",
                fix=Fix(text="See which there are.", command="sndr requests prefix"),
            )
        if last > listed.turns:
            chosen = tuple(client.call(endpoint_ops.CONVERSATION, id=one.id) for one in chosen)
    page = page.model_copy(update={"conversations": chosen})
    lines: list[str] = []
    for one in reversed(page.conversations):
        lines += [*([""] if lines else []), *conversation_lines(one, last)]
    out.result(page, lines or _NO_CONVERSATION)
    return None


def _is_meant(one: Conversation, beginning: str) -> bool:
    """Return True for the beginning of a conversation's id, or for a name that begins as its label."""
    return one.id.startswith(beginning) or bool(one.label and beginning.lower().startswith(one.label))


def _captured(detail: RequestDetail) -> CapturedRequest:
    if detail.captured is None:
        raise _nothing_kept(tr("The texts of {request} were not kept.", request=detail.request.id))
    return detail.captured


def _nothing_kept(message: str) -> HostError:
    return HostError(
        Reason.CONFLICT,
        message,
        cause="Texts of requests are kept only while that is switched on.",
        fix=Fix(text="Switch it on, then ask again.", command="sndr requests capture --minutes 15"),
    )


def _list(out: Output, follow: bool, engine: str | None, last: int) -> None:
    with connected() as client:
        page = client.call(endpoint_ops.REQUESTS, RequestQuery(engine=engine))
        newest = page.requests[:last]
        if not follow:
            shown = page.model_copy(update={"requests": newest})
            out.result(shown, request_table(newest[::-1]) if newest else _NONE)
            return
        wanted = client.call(ops.ENGINE, id=engine).id if engine is not None else None
        for one in newest[::-1]:
            _print(out, one)
        told: dict[str, float] = {}
        for event in client.events(page.seq):
            if not isinstance(event, EngineRequestEvent) or wanted not in (None, event.request.engine):
                continue
            one = event.request
            before = told.pop(one.id, -math.inf)
            if one.state is RequestState.DECODE:
                if not out.as_json and event.at < before + _WRITTEN_SECONDS:
                    told[one.id] = before
                    continue
                told[one.id] = event.at
            _print(out, one)


def _print(out: Output, request: Request) -> None:
    if out.as_json:
        out.record(request)
    else:
        echo(request_line(request))


def _whole_id(client: ControlClient, beginning: str) -> str:
    """Return the id that begins so. Raises HostError(not_found), HostError(conflict) for several."""
    known = [one.id for one in client.call(endpoint_ops.REQUESTS, RequestQuery()).requests]
    if beginning in known:
        return beginning
    found = [one for one in known if beginning and one.startswith(beginning)]
    if len(found) > 1:
        raise HostError(
            Reason.CONFLICT,
            tr("{count} requests begin with {beginning}.", count=len(found), beginning=beginning),
            fix=Fix(text="Give more of the id.", command="sndr requests list"),
        )
    # The host says what there is instead.
    return found[0] if found else beginning
