"""Requests to the endpoint as they are looked at: one of them, and how conversations reuse prompts."""

from enum import StrEnum

from pydantic import Field

from engine_host.protocol.base import Command, Page, Query, Seconds, Wire
from engine_host.protocol.engines import Request

MOST_LISTED_TURNS = 10
"""Turns of each conversation in a list; all of a hundred conversations are megabytes."""


class RequestQuery(Query):
    """The requests of one engine, by its id or public name; of all without one."""

    engine: str | None = None


class PromptPart(StrEnum):
    """A kind of part of a prompt."""

    TOOLS = "tools"
    SYSTEM = "system"
    MESSAGE = "message"


class PrefixReason(StrEnum):
    """Why so much of a prompt was reused, or so little."""

    FIRST_TURN = "first_turn"
    REUSED = "reused"
    TOOLS_CHANGED = "tools_changed"
    SYSTEM_CHANGED = "system_changed"
    MESSAGE_CHANGED = "message_changed"
    MESSAGE_INSERTED = "message_inserted"
    MESSAGES_REMOVED = "messages_removed"
    OTHER_ENGINE = "other_engine"
    CHECKPOINT = "checkpoint"
    CACHE_COLD = "cache_cold"
    NOT_MEASURED = "not_measured"


class Divergence(Wire):
    """The first part of a prompt that is not as it was in the turn before.

    `number` counts the client's own: of its messages, or of the parts of the system's text; `of` is how many
    the turn before had. `bytes_kept` of `bytes_before` came before it.
    """

    part: PromptPart
    role: str
    number: int
    of: int
    bytes_kept: int
    bytes_before: int


class PrefixTurn(Wire):
    """One request of a conversation. Tokens as the engine counts them; None is "not measured".

    `read_again` are tokens that the turn before had in its prompt too and that were not reused;
    `prefill_seconds` is how long the prompt took, and `lost_seconds` their share of it. A hybrid keeps its
    states at checkpoints alone, and a hit can end at none but these: `checkpoint` is the one where it ended,
    and `checkpoint_again` the tokens from there to where the prompts part, by bytes if they part early.
    """

    request: str
    at: Seconds
    engine: str
    model: str
    parts: int
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    read_again: int | None = None
    prefill_seconds: float | None = None
    lost_seconds: float | None = None
    checkpoint: int | None = None
    checkpoint_again: int | None = None
    reason: PrefixReason
    diverged: Divergence | None = None
    side: bool = Field(False, description="a request beside the conversation: another system text and start")


class ConversationQuery(Query):
    """The conversations, each with so many of its newest turns."""

    turns: int = Field(0, ge=0, le=MOST_LISTED_TURNS)


class Conversation(Wire):
    """A conversation and its newest turns, oldest first; in a list no more of them than were asked for.

    `source` is the header or field that names it, or `first message`; `label` the beginning of a random name.
    The sums are of the turns that were measured.
    """

    id: str
    label: str = ""
    source: str
    client: str = ""
    key: str | None = None
    started_at: Seconds
    last_at: Seconds
    count: int
    prompt_tokens: int = 0
    cached_tokens: int = 0
    measured: int = Field(0, description="turns of which prompt and cached tokens are known")
    read_again: int | None = None
    lost_seconds: float | None = None
    turns: tuple[PrefixTurn, ...] = ()


class ConversationPage(Page):
    """Conversations, the one of the newest turn first."""

    seq: int
    conversations: tuple[Conversation, ...]


class CaptureState(Wire):
    """The capture of requests' texts; `until` is None while none are captured. In bytes."""

    until: Seconds | None = None
    requests: int = 0
    bytes: int = 0
    most_requests: int
    most_bytes: int


class StartCapture(Command):
    """Capture for so many minutes of this run of the host; then all is forgotten."""

    minutes: int = Field(15, ge=1, le=24 * 60)


class KeptText(Wire):
    """A text as it was sent, without its secrets: of `bytes` bytes the last `left_out` were not kept."""

    text: str
    bytes: int
    left_out: int = 0


class CapturedRequest(Wire):
    """A request and its answer, as the client and as the engine had them; secrets are taken out.

    `difference` is what the endpoint changed, as a unified diff of the JSON: empty for nothing, None where it
    is too long to be compared or the engine was not asked. `text` is what the answer says, put together from
    its stream. `curl` sends the request again, with the key from the variable SNDR_API_KEY.
    """

    path: str
    headers: tuple[tuple[str, str], ...]
    asked: KeptText
    engine_path: str
    translated: KeptText
    difference: str | None = None
    engine_status: int | None = None
    engine_answer: KeptText
    status: int | None = None
    answer: KeptText
    text: str
    curl: str | None = None


class RequestDetail(Wire):
    """One request, with its turn in a conversation and its texts where it has them."""

    request: Request
    turn: PrefixTurn | None = None
    captured: CapturedRequest | None = None
