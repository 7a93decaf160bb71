"""Requests and conversations as lines of text; what was not measured is said, and never 0."""

import time
from collections.abc import Sequence

from engine_host.cli.text.tables import pairs, table
from engine_host.client.request_words import pretty, turn_text
from engine_host.core.sizes import duration, size_text
from engine_host.protocol.endpoint.requests import CapturedRequest, CaptureState, Conversation, PrefixTurn
from engine_host.protocol.engines import Request, RequestState
from engine_host.protocol.language import formed

_NOT = "not measured"
_HEADINGS = (
    "id", "time", "state", "client", "model", "first", "tok/s", "in", "cached", "out", "accepted", "key",
)  # fmt: skip
_SHORT = 12


def short_id(request: str) -> str:
    """Return the beginning of an id, which commands take too."""
    return request[:_SHORT]


def request_table(requests: Sequence[Request]) -> list[str]:
    """Return the list of requests."""
    return table(_HEADINGS, [_cells(one) for one in requests])


def request_line(request: Request) -> str:
    """Return a request as one line, for who follows them."""
    figures = (
        ("first", _seconds(request.ttft)),
        ("tok/s", _rate(request.decode_rate)),
        ("in", _count(request.prompt_tokens)),
        ("cached", _count(request.cached_tokens)),
        ("out", written(request)),
        ("at", "-" if request.decode_rate is not None else speed(request)),
    )
    told = "  ".join(f"{name} {value}" for name, value in figures if value != "-")
    failure = request.problem.message if request.problem is not None else ""
    who = request.client_name or "-"
    parts = (
        _clock(request.created_at),
        short_id(request.id),
        _state(request),
        who,
        request.destination,
        told,
        failure,
    )
    return "  ".join(filter(None, parts))


def request_lines(request: Request, turn: PrefixTurn | None) -> list[str]:
    """Return all that is known of a request."""
    prefill = request.prefill_seconds
    if prefill is None and turn is not None:
        prefill = turn.prefill_seconds
    rows = [
        ("request", request.id),
        ("client", request.client_name or "it does not say"),
        ("user agent", request.client or "none"),
        ("key", request.key or "none"),
        ("route", request.route),
        ("model", f"{request.destination} ({request.engine})"),
        ("state", _state(request)),
        ("began", time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(request.created_at))),
        ("waited", _seconds(request.waited, _NOT)),
        ("first token (endpoint)", _seconds(request.ttft, _NOT)),
        ("prefill", _seconds(prefill, _NOT)),
        ("decode", speed(request, _NOT, " tokens/s")),
        ("tokens in", _count(request.prompt_tokens, _NOT)),
        ("of them cached", _count(request.cached_tokens, _NOT)),
        ("tokens out", _tokens_out(request)),
        ("drafts accepted", _accepted(request, _NOT)),
        ("ended with", request.finish or "-"),
    ]
    if request.problem is not None:
        rows.append(("problem", request.problem.sentence()))
    if turn is not None:
        rows += [
            ("conversation", request.conversation or "-"),
            ("prefix", turn_text(turn)),
            ("read again", _count(turn.read_again, _NOT)),
            ("lost by that", _seconds(turn.lost_seconds, _NOT)),
            *_checkpoint(turn),
        ]
    return pairs(rows)


def _checkpoint(turn: PrefixTurn) -> list[tuple[str, str]]:
    if turn.checkpoint is None:
        return []
    return [
        (
            "hit ended at",
            f"the state kept at {turn.checkpoint:,} tokens" if turn.checkpoint else "no kept state",
        ),
        ("again for it", f"{_count(turn.checkpoint_again, _NOT)} tokens"),
    ]


def capture_lines(state: CaptureState) -> list[str]:
    """Return whether texts of requests are kept."""
    requests = "1 request" if state.requests == 1 else f"{state.requests} requests"
    held = f"{requests} held in memory, {size_text(state.bytes)} of at most {size_text(state.most_bytes)}."
    if state.until is None:
        return ["Off: texts of requests are not kept. Switch it on: sndr requests capture --minutes 15", held]
    return [f"On until {_clock(state.until)}: texts of requests are kept in memory, never on disk.", held]


def captured_lines(captured: CapturedRequest) -> list[str]:
    """Return the texts of a request: as it was sent, what was changed for the engine, and the answer."""
    changed = captured.difference
    if changed is None:
        changed = "(not compared)"
    elif not changed:
        changed = f"(nothing: the engine got the same text, at {captured.engine_path})"
    sections = (
        (f"request as sent to {captured.path}", pretty(captured.asked)),
        ("headers", "\n".join(f"{name}: {value}" for name, value in captured.headers)),
        (f"changed for the engine ({captured.engine_path})", changed),
        (f"answer, status {captured.status if captured.status is not None else '-'}", captured.text or "-"),
    )
    return [line for title, text in sections for line in ("", f"--- {title}", *text.split("\n"))]


def conversation_lines(one: Conversation, last: int) -> list[str]:
    """Return a conversation with its last turns."""
    name = f"{one.label}… ({one.source})" if one.label else f"{one.id} ({one.source})"
    share = (
        f"{one.cached_tokens:,} of {one.prompt_tokens:,} tokens reused" if one.measured else f"reuse {_NOT}"
    )
    lost = f", {_seconds(one.lost_seconds)} lost" if one.lost_seconds is not None else ""
    turns = "1 turn" if one.count == 1 else f"{one.count} turns"
    rows = [
        (
            str(one.count - len(one.turns) + number),
            short_id(turn.request),
            _clock(turn.at),
            _count(turn.prompt_tokens),
            _count(turn.cached_tokens),
            _count(turn.read_again),
            _seconds(turn.lost_seconds),
            turn_text(turn),
        )
        for number, turn in enumerate(one.turns, 1)
    ][-last:]
    head = ("turn", "request", "time", "in", "cached", "again", "lost", "prefix")
    return [f"{name}, {one.client or 'a client without a name'}: {turns}, {share}{lost}", *table(head, rows)]


def _cells(request: Request) -> tuple[str, ...]:
    return (
        short_id(request.id),
        _clock(request.created_at),
        _state(request),
        request.client_name or "-",
        request.destination,
        _seconds(request.ttft),
        speed(request),
        _count(request.prompt_tokens),
        _count(request.cached_tokens),
        written(request),
        _accepted(request),
        request.key or "-",
    )


def _state(request: Request) -> str:
    if request.state is RequestState.WAITING:
        return f"queued, {request.place}." if request.place is not None else "queued"
    if request.state is RequestState.PREFILL and request.prefill_tokens is not None and request.prefill_of:
        return f"{request.state.value} {formed(request.prefill_tokens / request.prefill_of, '.0%')}"
    return request.state.value


def _accepted(request: Request, unknown: str = "-") -> str:
    if request.draft_tokens is None or request.draft_accepted is None:
        return unknown
    return f"{request.draft_accepted} of {request.draft_tokens}"


def written(request: Request, unknown: str = "-") -> str:
    """Return the tokens of an answer, or the pieces of its stream where no tokens are told."""
    if request.generated_tokens is None and request.pieces is not None:
        return "1 piece" if request.pieces == 1 else f"{request.pieces:,} pieces"
    return _count(request.generated_tokens, unknown)


def speed(request: Request, unknown: str = "-", unit: str = "") -> str:
    """Return tokens a second, or pieces a second, named so."""
    if request.decode_rate is None:
        return _rate(request.piece_rate, unknown, " pieces/s")
    return _rate(request.decode_rate, unknown, unit)


def _tokens_out(request: Request) -> str:
    only = request.generated_tokens is None and request.pieces is not None
    return f"{_NOT}; {written(request)} came" if only else written(request, _NOT)


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))


def _seconds(value: float | None, unknown: str = "-") -> str:
    return unknown if value is None else duration(value)


def _rate(value: float | None, unknown: str = "-", unit: str = "") -> str:
    return unknown if value is None else f"{value:.1f}{unit}"


def _count(value: int | None, unknown: str = "-") -> str:
    return unknown if value is None else f"{value:,}"
