"""Texts of an exact number of tokens, by the count of the engine that is asked."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from engine_host.bench.lab import load
from engine_host.bench.lab.load import Message
from engine_host.core.outside import answers
from engine_host.protocol.base import JsonValue

_PLACES = ("mill", "harbour", "station", "library", "bakery", "tower", "bridge", "garden", "school", "market")
_THINGS = (
    "a lamp",
    "a bell",
    "two boats",
    "an old clock",
    "seven chairs",
    "a map",
    "a red door",
    "some rain",
)
_MOST = 64 << 20
_SECONDS = 60.0
_TRIES = 12
_FILLING = 8
_SHORT, _LONG = 8, 40


@dataclass(frozen=True)
class Text:
    """A text that is sent; `tokens` are those of the whole prompt, None where nobody can count before."""

    content: str
    tokens: int | None
    fact: str = ""


class Texts:
    """Makes texts for one engine; it is asked once how it counts."""

    def __init__(self, client: httpx.AsyncClient, model: str) -> None:
        self._client = client
        self._model = model
        self._how: str | None = None
        # Of one line, and of all that is around the lines; a first guess, corrected by each count.
        self._of_line = 0.0
        self._bare = 0.0
        self._heads: dict[str, str] = {}

    async def text(self, salted: str, question: str, tokens: int, *, depth: float | None = None) -> Text:
        """Return a text of so many tokens that begins with its salt; with a `depth` it holds a fact there."""
        return await self._fitted(f"[{salted}]", random.Random(salted), question, tokens, depth)

    async def headed(self, head: str, salted: str, question: str, tokens: int, shared: int) -> Text:
        """Return a text of so many tokens, of which the first `shared` are those of all of one `head`."""
        if head not in self._heads:
            made = await self._fitted(f"[{head}]", random.Random(head), "", shared, None)
            self._heads[head] = made.content
        return await self._fitted(
            f"{self._heads[head]}\n[{salted}]", random.Random(salted), question, tokens, None
        )

    async def count(self, messages: Sequence[Message]) -> int | None:
        """Return the tokens of a prompt as the engine's own tokenizer has them; None where it tells none.

        Raises httpx.HTTPError, AnswerError.
        """
        if self._how != "llama.cpp":
            asked = {"model": self._model, "messages": list(messages), "add_generation_prompt": True}
            said = await self._post("/tokenize", asked) if self._how != "none" else None
            if said is not None and isinstance(count := said.get("count"), int) and count > 0:
                self._how = "vllm"
                return count
        if self._how in {None, "llama.cpp"}:
            templated = await self._post("/apply-template", {"messages": list(messages)})
            if templated is not None and isinstance(prompt := templated.get("prompt"), str):
                said = await self._post(
                    "/tokenize", {"content": prompt, "add_special": True, "parse_special": True}
                )
                if said is not None and isinstance(found := said.get("tokens"), list):
                    self._how = "llama.cpp"
                    return len(found)
        self._how = self._how or "none"
        return None

    async def _post(self, path: str, body: dict[str, Any]) -> dict[str, JsonValue] | None:
        try:
            answer = await answers.fetch(self._client, path, most=_MOST, seconds=_SECONDS, json=body)
            return answer.object() if answer.status == httpx.codes.OK else None
        except (answers.AnswerError, ValueError, httpx.HTTPError):
            return None

    async def _fitted(
        self, begin: str, draw: random.Random, question: str, tokens: int, depth: float | None
    ) -> Text:
        fact = "" if depth is None else str(draw.randrange(10_000, 100_000))
        notes: list[str] = []

        def built(lines: int, words: int) -> str:
            while len(notes) < lines:
                notes.append(_note(draw))
            shown = notes[:lines]
            if depth is not None:
                shown.insert(round(depth * lines), f"The key of the archive is {fact}.")
            filled = ["And" + " on" * words + "."] if words else []
            return "\n".join([begin, *shown, *filled, *([question] if question else [])])

        async def counted(lines: int, words: int) -> int | None:
            return await self.count([{"role": "user", "content": built(lines, words)}])

        bare = await counted(0, 0)
        if bare is None:
            return Text(built(await self._guessed(begin, tokens), 0), None, fact)
        of_line = self._of_line or ((await counted(_SHORT, 0) or bare) - bare) / _SHORT or 1.0
        lines, best = 0, bare
        for _ in range(_TRIES):
            more = int((tokens - best) / of_line)
            if not more:
                break
            lines = max(0, lines + more)
            best = await counted(lines, 0) or bare
            if lines:
                self._of_line = of_line = max(1.0, (best - bare) / lines)
        # Words that fill a gap need a line of their own, and so a gap that holds one.
        while lines and (best > tokens or 0 < tokens - best < _FILLING):
            lines -= 1
            best = await counted(lines, 0) or bare
        words = 0
        fitting = (0, best)
        for _ in range(_TRIES):
            if best == tokens or tokens < bare:
                break
            words = max(0, words + tokens - best)
            best = await counted(lines, words) or bare
            if abs(tokens - best) < abs(tokens - fitting[1]):
                fitting = (words, best)
        return Text(built(lines, fitting[0]), fitting[1], fact)

    async def _guessed(self, begin: str, tokens: int) -> int:
        """Return the lines for about so many tokens, by the server's count of two other texts."""
        if not self._of_line:
            counts = []
            for lines in (_SHORT, _LONG):
                draw = random.Random(lines)
                text = "\n".join(_note(draw) for _ in range(lines))
                answer = await load.ask(
                    self._client,
                    self._model,
                    [{"role": "user", "content": text}],
                    max_tokens=1,
                    seed=1,
                    sampling={"temperature": 0.0},
                )
                counts.append(answer.prompt_tokens or 0)
            self._of_line = max(1.0, (counts[1] - counts[0]) / (_LONG - _SHORT))
            self._bare = counts[0] - _SHORT * self._of_line
        # What begins a text takes tokens too: a fourth of its signs is a fair guess.
        return max(1, int((tokens - self._bare - len(begin) / 4) / self._of_line))


def _note(draw: random.Random) -> str:
    return f"At the {draw.choice(_PLACES)} was {draw.choice(_THINGS)} on day {draw.randrange(100, 1000)}."
