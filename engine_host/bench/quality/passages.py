"""Windows of a text, facts hidden in it, and beginnings to go on from, all as token numbers."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from engine_host.core.errors import HostError
from engine_host.protocol.bench.quality import MeasureQuality
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr

DEPTHS = (0.05, 0.25, 0.5, 0.75, 0.95)
# Digits that no text has beside each other; one for each depth.
_KEYS = ("48213", "90562", "17384", "63905", "25147")
_FACT = "\nThe key of the archive is {key}.\n"
_QUESTION = "\nThe key of the archive is"
_LEAST_HAYSTACK = 8


@dataclass(frozen=True)
class Needle:
    """A prompt with a fact at a depth, and the tokens that answer it."""

    depth: float
    prompt: tuple[int, ...]
    answer: tuple[int, ...]


@dataclass(frozen=True)
class Passages:
    """Everything that every start is asked: `windows` count from token `first` on."""

    windows: tuple[tuple[int, ...], ...]
    first: int
    needles: tuple[Needle, ...]
    beginnings: tuple[tuple[int, ...], ...]

    @property
    def positions(self) -> int:
        """The number of predictions that are compared."""
        return sum(len(window) - self.first for window in self.windows)


async def passages(
    text: str,
    asked: MeasureQuality,
    start: Sequence[int],
    tokens: Callable[[str], Awaitable[list[int]]],
) -> Passages:
    """Cut a text for what was asked; `start` are the tokens that the model wants before any text.

    Raises HostError(bad_request) for a text that is too short.
    """
    whole = await tokens(text)
    begin, body = list(start), asked.context - len(start)
    counted = asked.context - asked.context // 2
    needed = -(-asked.positions // counted)
    if len(whole) < body:
        raise HostError(
            Reason.BAD_REQUEST,
            tr("The text has {count} tokens, and one window takes {body}.", count=len(whole), body=body),
            fix="Give a longer text with --text FILE, or a shorter --context.",
            evidence={"tokens": len(whole), "needed": body},
        )
    # As many whole windows as there are; the last that was asked for may be shorter.
    places = range(0, len(whole) - body + 1, body)
    windows, left = [], asked.positions
    for place in list(places)[:needed]:
        taken = asked.context // 2 - len(begin) + min(counted, left)
        windows.append((*begin, *whole[place : place + taken]))
        left -= min(counted, left)
    question = await tokens(_QUESTION)
    needles = []
    for depth, key in zip(DEPTHS, _KEYS, strict=True):
        fact, answer = await tokens(_FACT.format(key=key)), await tokens(f" {key}")
        room = body - len(fact) - len(question) - len(answer)
        if room < _LEAST_HAYSTACK:
            break
        place = round(depth * room)
        prompt = (*begin, *whole[:place], *fact, *whole[place:room], *question)
        needles.append(Needle(depth, prompt, tuple(answer)))
    length = max(8, min(body // 2, body - asked.answer_tokens))
    step = max(1, (len(whole) - length) // max(1, asked.answers))
    beginnings = [(*begin, *whole[place * step : place * step + length]) for place in range(asked.answers)]
    return Passages(tuple(windows), asked.context // 2, tuple(needles), tuple(beginnings))
