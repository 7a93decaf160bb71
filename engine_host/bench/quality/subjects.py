"""Engines as they are asked here: tokens of a text, predictions of given tokens, greedy answers."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import httpx

from engine_host.bench.quality.figures import Position
from engine_host.core.errors import HostError
from engine_host.core.likely_causes import silent_engine
from engine_host.core.outside import answers
from engine_host.engines.temporary import TemporaryEngine
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr

# A window of a thousand predictions with a thousand listed tokens each.
_MOST = 256 << 20
_SECONDS = 1800.0


class Subject(Protocol):
    """One start of one model with one type of the KV cache."""

    async def tokens(self, text: str) -> list[int]:
        """The tokens of a text, none added. Raises HostError(engine_not_ready)."""

    async def start_tokens(self) -> list[int]:
        """The tokens that the model wants before any text."""

    async def predictions(self, tokens: Sequence[int], first: int) -> list[Position]:
        """Return the prediction of each token from `first` on. Raises HostError(engine_not_ready)."""

    async def answer(self, tokens: Sequence[int], count: int) -> list[int]:
        """So many tokens at temperature 0. Raises HostError(engine_not_ready)."""


class _Asked:
    def __init__(self, engine: TemporaryEngine, top: int) -> None:
        self._engine = engine
        self._top = top

    async def _ask(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        try:
            answer = await answers.fetch(self._engine.client, path, json=body, most=_MOST, seconds=_SECONDS)
            if not answer.is_success:
                raise ValueError(f"{path} was answered with {answer.status}: {answer.text[:400]}")
            return answer.object()
        except (httpx.HTTPError, ValueError) as error:
            raise odd_answer(error) from error


def odd_answer(error: Exception) -> HostError:
    """The refusal of an engine's answer."""
    return HostError(
        Reason.ENGINE_NOT_READY,
        tr("The engine did not answer as it should: {error}.", error=f"{error!r:.400}"),
        cause=silent_engine(),
        fix="A type of the cache that this engine cannot run ends so too; try another.",
    )


class VllmSubject(_Asked):
    """vLLM: log-probabilities of a prompt, which it reads in chunks."""

    async def tokens(self, text: str) -> list[int]:
        """Ask its tokenizer."""
        return await self._tokenized(text, special=False)

    async def start_tokens(self) -> list[int]:
        """Compare a text with and without special tokens."""
        return _before(await self._tokenized("a", special=True), await self._tokenized("a", special=False))

    async def _tokenized(self, text: str, *, special: bool) -> list[int]:
        body = {"model": self._engine.plan.name, "prompt": text, "add_special_tokens": special}
        return _numbers((await self._ask("/tokenize", body)).get("tokens"))

    async def predictions(self, tokens: Sequence[int], first: int) -> list[Position]:
        """Read them off one request that answers with a single token."""
        body = self._completion(tokens, 1) | {"prompt_logprobs": self._top}
        choice = _choice(await self._ask("/v1/completions", body))
        listed = choice.get("prompt_logprobs")
        if not isinstance(listed, list) or len(listed) != len(tokens):
            raise odd_answer(ValueError("its log-probabilities are not one a token"))
        return [
            Position(token, _listed(known))
            for token, known in zip(tokens[first:], listed[first:], strict=True)
        ]

    async def answer(self, tokens: Sequence[int], count: int) -> list[int]:
        """Go on from given tokens."""
        choice = _choice(await self._ask("/v1/completions", self._completion(tokens, count)))
        return _numbers(choice.get("token_ids"))

    def _completion(self, tokens: Sequence[int], count: int) -> dict[str, Any]:
        return {
            "model": self._engine.plan.name,
            "prompt": list(tokens),
            "max_tokens": count,
            "temperature": 0,
            "ignore_eos": True,
            "return_token_ids": True,
        }


class LlamaCppSubject(_Asked):
    """llama.cpp's server: a request a token, each of which reads the cache of all before it."""

    async def tokens(self, text: str) -> list[int]:
        """Ask its tokenizer."""
        return await self._tokenized(text, special=False)

    async def start_tokens(self) -> list[int]:
        """Compare a text with and without special tokens."""
        return _before(await self._tokenized("a", special=True), await self._tokenized("a", special=False))

    async def _tokenized(self, text: str, *, special: bool) -> list[int]:
        found = await self._ask("/tokenize", {"content": text, "add_special": special})
        return _numbers(found.get("tokens"))

    async def predictions(self, tokens: Sequence[int], first: int) -> list[Position]:
        """Ask for the token behind each beginning; the server keeps what it has read."""
        found = []
        for place in range(first, len(tokens)):
            said = await self._ask(
                "/completion", self._completion(tokens[:place], 1) | {"n_probs": self._top}
            )
            try:
                (one,) = said["completion_probabilities"]
                listed = {
                    int(entry["id"]): float(entry["logprob"])
                    for entry in one["top_logprobs"]
                    if entry["logprob"] is not None and math.isfinite(entry["logprob"])
                }
            except (KeyError, TypeError, ValueError) as error:
                raise odd_answer(error) from error
            if not listed:
                raise odd_answer(ValueError("it lists no token"))
            found.append(Position(tokens[place], listed))
        return found

    async def answer(self, tokens: Sequence[int], count: int) -> list[int]:
        """Go on from given tokens."""
        return _numbers((await self._ask("/completion", self._completion(tokens, count))).get("tokens"))

    def _completion(self, tokens: Sequence[int], count: int) -> dict[str, Any]:
        return {
            "prompt": list(tokens),
            "n_predict": count,
            "temperature": 0,
            "ignore_eos": True,
            "cache_prompt": True,
            "id_slot": 0,
            "return_tokens": True,
        }


def _choice(said: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        choice = said["choices"][0]
    except (KeyError, IndexError, TypeError) as error:
        raise odd_answer(error) from error
    if not isinstance(choice, dict):
        raise odd_answer(ValueError("its choice is no object"))
    return choice


def _listed(known: Any) -> dict[int, float]:
    try:
        found = {int(token): float(entry["logprob"]) for token, entry in known.items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise odd_answer(error) from error
    finite = {token: value for token, value in found.items() if math.isfinite(value)}
    if not finite:
        raise odd_answer(ValueError("it lists no token"))
    return finite


def _numbers(found: Any) -> list[int]:
    if not isinstance(found, list) or not all(type(one) is int for one in found):
        raise odd_answer(ValueError("its tokens are no numbers"))
    return found


def _before(special: list[int], plain: list[int]) -> list[int]:
    """The tokens added before a text; what is added behind it means nothing here."""
    for place in range(len(special) - len(plain) + 1):
        if special[place : place + len(plain)] == plain:
            return special[:place]
    return []
