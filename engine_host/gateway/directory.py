"""The gateway's view of the engines: the address, model id and capabilities of each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

ActivityHook = Callable[[str, int], None]
"""Called with an engine's id and its number of active requests whenever that number changes."""


LOADED, LOADING, UNLOADED = "loaded", "loading", "unloaded"


@dataclass(frozen=True)
class Target:
    """One engine that answers requests.

    `engine` is the engine's id, `name` its public model id. Exactly one of `socket` (path of a Unix socket)
    and `url` (`http://host:port`) is set. `context` is what one request may use, in tokens; `created_at` in
    seconds since the epoch; `size` in bytes. None is "not known" and is left out of `/v1/models`.
    `native_infill`: the engine has llama.cpp's `/infill`; else a middle is asked for with `fim_tokens`, the
    model's own for prefix, suffix and middle; `fim_ids` are the numbers of the same, after that of the token
    which begins a text where one belongs there. `usage_on_request`: a stream ends with figures only when the
    request says so. `tells_counts`: asked, it tells with each piece how many tokens are written, at a cost
    that does not grow with the answer. `tokens_only`: it has no tokenizer and takes token numbers alone.
    `images`: a message may hold pictures; `audio`: it may hold sound, as far as the model's files say so.
    `reranking`: it scores texts and writes none.
    `known_as` is the engine's own name where `name` is another one, a route's; `stands_for` are the other
    names by which a route may mean it: its preset, its model. `route`: what the route leads to, in words.
    `provider` is the host and port of who answers and is no engine of this program; None for an engine.
    `machine` is the name of another machine whose engine host answers, and so its own `provider`; `prefix`
    stands before every path there.
    `state` is `loaded`, or `loading` or `unloaded` for a model that a request loads; `expires_at` is when it
    is stopped if no request comes, in seconds since the epoch. `context_step`: a context that is asked for at
    a start becomes a multiple of so many tokens.
    `checkpoints`: a prompt's beginning is found again only up to a state that was kept of it (hybrids);
    `checkpoint_step` is how many tokens apart such states are, None where that is not known.
    """

    engine: str
    name: str
    slots: int
    context: int
    created_at: float
    socket: str | None = None
    url: str | None = None
    parameters: int | None = None
    size: int | None = None
    context_trained: int | None = None
    architecture: str | None = None
    quantization: str | None = None
    owned_by: str = "llamacpp"
    embeddings: bool = False
    fill_in_the_middle: bool | None = None
    tools: bool | None = None
    key: str | None = field(default=None, repr=False)
    native_infill: bool = True
    fim_tokens: tuple[str, str, str] | None = None
    fim_ids: tuple[int, ...] = ()
    usage_on_request: bool = False
    tells_counts: bool = False
    tokens_only: bool = False
    images: bool = False
    audio: bool = False
    reranking: bool = False
    known_as: str = ""
    stands_for: tuple[str, ...] = ()
    route: tuple[str, ...] = ()
    provider: str | None = None
    machine: str | None = None
    prefix: str = ""
    state: str = LOADED
    expires_at: float | None = None
    context_step: int = 1
    checkpoints: bool = False
    checkpoint_step: int | None = None

    def has_context(self, asked: int) -> bool:
        """Return True if a start with this context, in tokens, would have what this one has."""
        rounded = -(-asked // self.context_step) * self.context_step
        # An engine that was asked for more than the model was trained for gives what it was trained for.
        most = self.context_trained if self.context_step > 1 else None
        return self.context in (asked, rounded) or (most is not None and asked >= most == self.context)

    @property
    def is_own_vllm(self) -> bool:
        """True for a vLLM of this machine; what another one answers was completed there."""
        return (
            self.provider is None
            and self.machine is None
            and self.usage_on_request
            and not self.native_infill
        )

    @property
    def engine_name(self) -> str:
        """The name by which who answers knows the model: in requests to it, and in commands about it."""
        return self.known_as or self.name

    def __post_init__(self) -> None:
        """Refuse a target that cannot be reached or can answer nothing; raises ValueError."""
        if (self.socket is None) == (self.url is None):
            raise ValueError("a target has a socket or a url, exactly one of them")
        if self.slots < 1:
            raise ValueError("a target has at least one slot")


class Directory(Protocol):
    """The engines as the engine manager knows them; both calls are cheap and never block."""

    def targets(self) -> Sequence[Target]:
        """Engines that can answer now, first started first."""
        ...

    def starting(self) -> Sequence[str]:
        """Public model ids of engines that are on their way up."""
        ...
