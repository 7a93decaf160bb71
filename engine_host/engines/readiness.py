"""The proof that a started engine answers as its plan says: it lists its model, generates, and drafts."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from engine_host.core.errors import HostError
from engine_host.core.outside import answers
from engine_host.engines.metrics import MOST_BYTES, Metrics
from engine_host.protocol.engines import Verification
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr

READ_SECONDS = 5.0
# Repeats itself, so that an n-gram drafter finds something to draft.
_WORDS = "one two three four five six seven eight " * 12
_TOKENS = 16
_MOST_BYTES = 4 << 20
_MOST_NAMES, _LONGEST_NAME = 16, 120
_LONGEST_ANSWER = 4000


@dataclass(frozen=True, slots=True)
class Probe:
    """The verification requests of an engine; `completion` has the fields that only this engine's request
    has.

    `speculation` is what drafts, empty when nothing does, and an engine that `must_draft` and does not is not
    ready. Its counter is read `tries` times.
    """

    alias: str
    metrics_prefix: str
    seconds: float
    embeddings: bool
    completion: Mapping[str, Any]
    speculation: str = ""
    must_draft: bool = False
    tries: int = 1
    reranking: bool = False


async def verify_ready(client: httpx.AsyncClient, probe: Probe, began: float) -> Verification:
    """Prove that the engine lists the model, generates, and drafts if it should.

    A drafter that found nothing to draft in the probe and need not leaves `speculation_moved` None. Raises
    HostError(engine_not_ready), and httpx.HTTPError when the connection breaks: only who holds the process
    can say whether it ended, and why.
    """
    try:
        # As patient as with its first token: a machine at work with much else is no reason to end a start.
        listed = await answers.fetch(client, "/v1/models", most=_MOST_BYTES, seconds=probe.seconds)
        models = _models(listed.object())
        if probe.alias not in models:
            shown = [name[:_LONGEST_NAME] for name in list(models)[:_MOST_NAMES]]
            raise _not_ready(
                tr(
                    "It lists {shown}, not {alias}.",
                    shown=", ".join(shown) or tr("no model"),
                    alias=probe.alias,
                ),
                {"listed": shown},
            )
        before = await _drafted(client, probe) if probe.speculation else None
        await _answers(client, probe)
        moved = await _drafts(client, probe, before) if probe.speculation else None
    except ValueError as error:
        raise _not_ready(
            tr("It did not answer as it should: {error}.", error=error), {"error": repr(error)[:400]}
        ) from error
    return Verification(
        model_listed=True,
        token_generated=True,
        speculation_moved=moved,
        context=_positive(models[probe.alias].get("max_model_len")),
        ready_after=round(time.monotonic() - began, 3),
    )


def _positive(value: object) -> int | None:
    """Return a number of tokens; None for what is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


async def _answers(client: httpx.AsyncClient, probe: Probe) -> None:
    body: dict[str, Any] = {"model": probe.alias}
    kind, missing = "", tr("It generated no token.")
    if probe.reranking:
        path, kind, missing = "/v1/rerank", "results", tr("It scored nothing.")
        body |= {"query": "one", "documents": ["one two three"]}
    elif probe.embeddings:
        path, kind, missing = "/v1/embeddings", "data", tr("It gave no embedding.")
        body["input"] = "one two three"
    else:
        path = "/v1/completions"
        body |= {"prompt": _WORDS, "max_tokens": _TOKENS, "temperature": 0, "ignore_eos": True}
        body |= probe.completion
    answer = await answers.fetch(client, path, most=_MOST_BYTES, seconds=probe.seconds, json=body)
    content = answer.object()
    usage = content.get("usage")
    tokens = usage.get("completion_tokens") if isinstance(usage, dict) else None
    generated = type(tokens) is int and tokens > 0
    if not answer.is_success or not (content.get(kind) if kind else generated):
        raise _not_ready(missing, {"status": answer.status, "answer": answer.text[:_LONGEST_ANSWER]})


def _models(listed: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the models that an engine lists, by their ids."""
    data = listed.get("data")
    models = [one for one in data if isinstance(one, dict)] if isinstance(data, list) else []
    return {one["id"]: one for one in models if isinstance(one.get("id"), str)}


async def _drafted(client: httpx.AsyncClient, probe: Probe) -> float | None:
    answer = await answers.fetch(client, "/metrics", most=MOST_BYTES, seconds=probe.seconds)
    if not answer.is_success:
        return None
    return Metrics(answer.text, probe.metrics_prefix).total("spec_decode_num_drafts_total")


async def _drafts(client: httpx.AsyncClient, probe: Probe, before: float | None) -> bool | None:
    for _ in range(probe.tries):
        now = await _drafted(client, probe)
        if now is not None and now > (before or 0):
            return True
        if probe.tries > 1:
            await asyncio.sleep(0.05)
    if not probe.must_draft:
        return None
    raise _not_ready(
        tr("Speculation ({speculation}) is on, but nothing was drafted.", speculation=probe.speculation),
        {"speculation": probe.speculation, "drafts_before": before, "drafts_after": now},
    )


def _not_ready(detail: str, evidence: dict[str, Any]) -> HostError:
    return HostError(
        Reason.ENGINE_NOT_READY,
        tr("The engine started but is not ready. {detail}", detail=detail),
        cause="Its process answers, but not as an engine whose model works.",
        fix="Read its log; start it again, with another build of the engine or without patches.",
        evidence=evidence,
    )
