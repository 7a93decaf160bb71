"""The view-model of the inspector: all that is known of one request, and its texts where they were kept."""

from __future__ import annotations

import asyncio
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.client.request_export import write_requests
from engine_host.client.request_words import pretty, readable, turn_text
from engine_host.protocol.endpoint.requests import CapturedRequest, RequestDetail
from engine_host.protocol.engines import Request
from engine_host.protocol.language import tr
from engine_host.protocol.operations import endpoint as endpoint_ops
from sndr_gui.host.session import Session
from sndr_gui.host.state import OPEN_REQUESTS
from sndr_gui.kit import formats
from sndr_gui.kit.setting_words import word_of
from sndr_gui.models.monitor.written import speed, written

_NOT = tr("not measured")
CHANGED = tr("Changed")
TEXTS = (
    tr("As sent"),
    tr("For the engine"),
    CHANGED,
    tr("Answer"),
    tr("Sent to the client"),
    tr("From the engine"),
)


class InspectorModel(QObject):
    """The model of one request's inspector.

    Signals:
        changed: what is shown is new
    """

    changed = Signal()

    def __init__(self, session: Session, request: Request) -> None:
        super().__init__()
        self.session = session
        self.request = request
        self.detail: RequestDetail | None = None
        self.texts: dict[str, str] = {}
        self.problem = ""
        session.state.request_changed.connect(self._on_request)

    @property
    def captured(self) -> CapturedRequest | None:
        """The texts, where they were kept."""
        return self.detail.captured if self.detail is not None else None

    @property
    def curl(self) -> str:
        """The command that asks the same again; empty where there is none."""
        return (self.captured.curl or "") if self.captured is not None else ""

    def load(self) -> None:
        """Read the request with its texts."""

        async def work(client: AsyncControlClient) -> None:
            detail = await client.call(endpoint_ops.REQUEST, id=self.request.id)
            # Texts of a megabyte are parsed and written again.
            texts = await asyncio.to_thread(_texts, detail.captured) if detail.captured is not None else {}
            self.detail, self.request, self.texts = detail, detail.request, texts
            self.changed.emit()

        self.session.command("inspect request", work, failed=self._failed)

    def facts(self) -> list[tuple[str, str]]:
        """Return what is known of the request, by name."""
        one = self.request
        turn = self.detail.turn if self.detail is not None else None
        prefill = one.prefill_seconds
        if prefill is None and turn is not None:
            prefill = turn.prefill_seconds
        accepted = (
            tr(
                "{count} of {count_2}",
                count=formats.count(one.draft_accepted),
                count_2=formats.count(one.draft_tokens),
            )
            if one.draft_tokens is not None and one.draft_accepted is not None
            else _NOT
        )
        rows = [
            (tr("Request"), one.id),
            (
                tr("State"),
                tr("{state}, place {place} in the queue", state=word_of(one.state.value), place=one.place)
                if one.place
                else word_of(one.state.value),
            ),
            (tr("Client"), one.client_name or tr("it does not say")),
            (tr("User agent"), one.client or tr("none")),
            (tr("Key"), one.key or tr("none")),
            (tr("Route"), one.route),
            (tr("Model"), f"{one.destination} ({one.engine})"),
            (tr("Waited"), _seconds(one.waited)),
            (tr("First token (endpoint)"), _seconds(one.ttft)),
            (tr("Prefill"), _seconds(prefill)),
            (tr("Decode"), _NOT if one.decode_rate is None and one.piece_rate is None else speed(one)),
            (tr("Tokens in"), _tokens(one.prompt_tokens)),
            (tr("Of them cached"), _tokens(one.cached_tokens)),
            (tr("Tokens out"), _out(one)),
            (tr("Drafts accepted"), accepted),
            (tr("Ended with"), one.finish or "—"),
        ]
        if turn is not None:
            rows += [
                (tr("Prefix"), turn_text(turn)),
                (tr("Recomputed"), _tokens(turn.read_again)),
                (tr("Time lost"), _seconds(turn.lost_seconds)),
            ]
            if turn.checkpoint is not None:
                rows += [
                    (tr("Hit ended at state"), _tokens(turn.checkpoint)),
                    (tr("Recomputed after it"), _tokens(turn.checkpoint_again)),
                ]
        if one.problem is not None:
            rows.append((tr("Problem"), one.problem.sentence()))
        return [(name, readable(value)) for name, value in rows]

    def headers(self) -> str:
        """Return the headers as lines."""
        if self.captured is None:
            return ""
        return readable("\n".join(f"{name}: {value}" for name, value in self.captured.headers))

    def export(self, path: str) -> None:
        """Write the request to a file that its owner alone can read."""
        detail = self.detail
        if detail is None:
            return

        async def work(_client: AsyncControlClient) -> None:
            await asyncio.to_thread(write_requests, Path(path), [detail])
            self.session.notices.info(
                "export request", tr("Written to {path}, readable by you alone.", path=path)
            )

        self.session.command("export request", work)

    def _failed(self, error: HostError) -> None:
        self.problem = error.problem.sentence()
        self.changed.emit()

    def _on_request(self, request: Request) -> None:
        if request.id != self.request.id:
            return
        ended = self.request.state in OPEN_REQUESTS and request.state not in OPEN_REQUESTS
        self.request = request
        if ended:
            self.load()
        else:
            self.changed.emit()


def _texts(captured: CapturedRequest) -> dict[str, str]:
    changed = captured.difference
    if changed is None:
        changed = tr("Not compared: the engine was not asked, or the texts are too long.")
    elif not changed:
        changed = tr(
            "Nothing: the engine got the same text, at {engine_path}.", engine_path=captured.engine_path
        )
    values = (
        pretty(captured.asked),
        pretty(captured.translated),
        changed,
        captured.text,
        pretty(captured.answer),
        pretty(captured.engine_answer),
    )
    return {name: readable(value) for name, value in zip(TEXTS, values, strict=True)}


def _seconds(value: float | None) -> str:
    return _NOT if value is None else formats.duration(value)


def _out(request: Request) -> str:
    """Return the tokens, or that only pieces were counted."""
    if request.generated_tokens is None and request.pieces is not None:
        return tr("{not_measured}; {pieces} came", not_measured=_NOT, pieces=written(request))
    return _tokens(request.generated_tokens)


def _tokens(value: int | None) -> str:
    return _NOT if value is None else formats.number(value)
