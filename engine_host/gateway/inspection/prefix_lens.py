"""The conversations of the newest requests, and how each turn reused the prompt of the turn before.

Hashes are made while the engine is at work, those of long requests on another thread; a request that ends
before its hashes are there waits for them, not for anybody else.
"""

import asyncio
import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine_host.gateway.inspection.comparison import Turn, compared, same_conversation, shared_parts
from engine_host.gateway.inspection.conversation import Named
from engine_host.gateway.inspection.marks import Mark, first_words, marks_of
from engine_host.gateway.request_log import Entry
from engine_host.protocol.endpoint.requests import Conversation, PrefixTurn
from engine_host.protocol.engines import RequestState

_CHATS = frozenset({"/v1/chat/completions", "/v1/responses", "/v1/messages", "/api/chat"})
_DELAY = 0.01
"""Seconds after which a prompt is hashed: the engine has the request by then, and works on it."""
_BESIDE = 64 << 10
"""Bytes of a request whose parts are hashed on a thread of their own."""
_MOST_AT_WORK = 64
"""Requests that are being hashed; of those beyond it nothing is told."""
_MOST_CONVERSATIONS = 100
_MOST_TURNS = 200
_MOST_STRANDS = 8
"""Lines of one conversation that are told apart: agents ask beside it for titles and summaries."""
_MOST_PARTS = 100_000
"""Parts of all conversations that are kept, some 200 bytes each."""


@dataclass(eq=False)
class _Conversation:
    """One conversation: its turns, and the newest turn of each of its strands."""

    id: str
    label: str
    source: str
    client: str
    key: str | None
    started_at: float
    count: int = 0
    turns: list[PrefixTurn] = field(default_factory=list)
    heads: list[Turn] = field(default_factory=list)
    told: Conversation | None = None
    """As it is listed, without its turns."""

    @property
    def parts(self) -> int:
        """The number of parts that are kept."""
        return sum(len(head.marks) for head in self.heads)


class PrefixLens:
    """The knowledge of prompts and their reuse; lives on one event loop."""

    def __init__(self) -> None:
        self._salt = secrets.token_bytes(16)
        self._known: OrderedDict[str, _Conversation] = OrderedDict()
        self._turns: OrderedDict[str, PrefixTurn] = OrderedDict()
        self._marked: dict[str, tuple[Mark, ...]] = {}
        self._named: dict[str, Named] = {}
        self._due: dict[str, tuple[asyncio.TimerHandle, Mapping[str, Any], int]] = {}
        self._at_work: dict[str, asyncio.Task[None]] = {}
        self._parts = 0

    def begin(self, entry: Entry, named: Named | None, body: Mapping[str, Any], size: int) -> None:
        """Look at a request of `size` bytes, of the conversation that it names, or the one its words tell."""
        if entry.route not in _CHATS:
            return
        if named is not None:
            self._named[entry.id] = named
            entry.conversation = self._id(named.source, named.value)
        entry.on_end = self._ended
        timer = asyncio.get_running_loop().call_later(_DELAY, self._look, entry, body, size)
        self._due[entry.id] = timer, body, size

    def conversations(self, turns: int) -> tuple[Conversation, ...]:
        """Return the conversations, that of the newest turn first, each with so many of its newest turns."""
        return tuple(filter(None, (_listed(one, turns) for one in reversed(self._known.values()))))

    def conversation(self, conversation: str) -> Conversation | None:
        """Return one conversation with all turns that are kept; None where there is none of this id."""
        one = self._known.get(conversation)
        return _listed(one, _MOST_TURNS) if one is not None else None

    def turn(self, request_id: str) -> PrefixTurn | None:
        """Return what became of a request's prompt; None for one that is in no conversation."""
        return self._turns.get(request_id)

    async def aclose(self) -> None:
        """Stop looking."""
        for timer, _, _ in self._due.values():
            timer.cancel()
        self._due.clear()
        for task in self._at_work.values():
            task.cancel()
        await asyncio.gather(*self._at_work.values(), return_exceptions=True)

    def _look(self, entry: Entry, body: Mapping[str, Any], size: int) -> None:
        self._due.pop(entry.id, None)
        if size <= _BESIDE:
            self._take(entry, _marks(body, self._salt))
        elif len(self._at_work) < _MOST_AT_WORK:
            self._at_work[entry.id] = asyncio.create_task(self._mark(entry, body), name="prompt's parts")

    async def _mark(self, entry: Entry, body: Mapping[str, Any]) -> None:
        try:
            self._take(entry, await asyncio.to_thread(_marks, body, self._salt))
        finally:
            self._at_work.pop(entry.id, None)
        if entry.ended:
            self._ended(entry)

    def _take(self, entry: Entry, marks: tuple[Mark, ...]) -> None:
        self._marked[entry.id] = marks
        words = first_words(marks)
        if entry.conversation is None and words is not None:
            # Who names no conversation goes on with one that began with the same words.
            who = (entry.client, entry.key or "", entry.target.name)
            entry.conversation = self._id("first message", *who, str(words))

    def _id(self, *words: str) -> str:
        text = "\0".join(words).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(text, digest_size=5, key=self._salt).hexdigest()

    def _ended(self, entry: Entry) -> None:
        if (due := self._due.get(entry.id)) is not None:
            timer, body, size = due
            timer.cancel()
            self._look(entry, body, size)
        if entry.id in self._at_work:
            return
        marks = self._marked.pop(entry.id, ())
        named = self._named.pop(entry.id, None)
        answered = entry.state is RequestState.DONE or entry.ttft is not None
        if entry.conversation is None or not marks or not answered:
            return
        known = self._known.get(entry.conversation)
        if known is None:
            label, source = (named.label, named.source) if named is not None else ("", "first message")
            known = _Conversation(
                entry.conversation, label, source, entry.client_name, entry.key, entry.created_at
            )
            self._known[known.id] = known
        self._known.move_to_end(known.id)
        self._add(known, _turn(entry, marks))

    def _add(self, known: _Conversation, turn: Turn) -> None:
        held = known.parts
        before = _before(known.heads, turn)
        told = compared(before, turn, side=before is None and bool(known.heads))
        if before is not None:
            known.heads.remove(before)
        known.heads.append(turn)
        del known.heads[:-_MOST_STRANDS]
        known.count += 1
        known.turns.append(told)
        if len(known.turns) > _MOST_TURNS:
            self._turns.pop(known.turns.pop(0).request, None)
        self._turns[turn.request] = told
        known.told = None
        self._parts += known.parts - held
        while len(self._known) > _MOST_CONVERSATIONS or (self._parts > _MOST_PARTS and len(self._known) > 1):
            _, gone = self._known.popitem(last=False)
            self._parts -= gone.parts
            for one in gone.turns:
                self._turns.pop(one.request, None)


def _before(heads: list[Turn], turn: Turn) -> Turn | None:
    """Return the turn that this one goes on from: the one with the longest beginning in common."""
    same = [head for head in heads if same_conversation(head.marks, turn.marks)]
    return max(same, key=lambda head: (shared_parts(head.marks, turn.marks), head.at), default=None)


def _turn(entry: Entry, marks: tuple[Mark, ...]) -> Turn:
    figures = entry.figures
    prefill = figures.prefill_seconds
    if prefill is None and entry.ttft is not None and entry.waited is not None:
        prefill = max(0.0, entry.ttft - entry.waited)
    return Turn(
        entry.id,
        entry.created_at,
        entry.target.engine,
        entry.target.name,
        marks,
        figures.prompt_tokens,
        figures.cached_tokens,
        prefill,
        entry.target.checkpoints,
        entry.target.checkpoint_step,
    )


def _marks(body: Mapping[str, Any], salt: bytes) -> tuple[Mark, ...]:
    try:
        return marks_of(body, salt)
    except ValueError:  # A number with thousands of digits, which nothing writes.
        return ()


def _listed(one: _Conversation, turns: int) -> Conversation | None:
    """Return a conversation with so many of its newest turns; None before its first."""
    if one.told is None and one.turns:
        one.told = _told(one)
    if one.told is None or turns == 0:
        return one.told
    return one.told.model_copy(update={"turns": tuple(one.turns[-turns:])})


def _told(one: _Conversation) -> Conversation:
    """Return a conversation without its turns; made once a turn, where anybody lists it."""
    measured = [
        turn for turn in one.turns if turn.prompt_tokens is not None and turn.cached_tokens is not None
    ]
    again = [turn.read_again for turn in one.turns if turn.read_again is not None]
    lost = [turn.lost_seconds for turn in one.turns if turn.lost_seconds is not None]
    return Conversation(
        id=one.id,
        label=one.label,
        source=one.source,
        client=one.client,
        key=one.key,
        started_at=one.started_at,
        last_at=one.turns[-1].at,
        count=one.count,
        prompt_tokens=sum(turn.prompt_tokens or 0 for turn in measured),
        cached_tokens=sum(turn.cached_tokens or 0 for turn in measured),
        measured=len(measured),
        read_again=sum(again) if again else None,
        lost_seconds=sum(lost) if lost else None,
    )
