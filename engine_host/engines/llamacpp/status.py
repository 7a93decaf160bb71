"""Read a running llama-server's metrics, and verify that it answers as its plan says."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from engine_host.core.outside import answers
from engine_host.core.outside.answers import Body
from engine_host.engines import readiness
from engine_host.engines.adapter import Adapter
from engine_host.engines.llamacpp.command import STRIPPED_ENVIRONMENT
from engine_host.engines.llamacpp.log import LlamaCppStageReader, explain_exit
from engine_host.engines.llamacpp.served_lines import LLAMA_CPP_LINES
from engine_host.engines.metrics import MOST_BYTES, Metrics, share_of, whole
from engine_host.engines.readiness import READ_SECONDS, Probe
from engine_host.protocol.engine_settings.row import OFF
from engine_host.protocol.engines import Readings, Verification
from engine_host.protocol.errors import Problem
from engine_host.protocol.launch.plans import LaunchPlan

_PREFIX = "llamacpp:"
_VERIFY_SECONDS = 120.0
# A slot tells the parameters of its request, a grammar and a schema among them.
_SLOTS_BYTES = 32 << 20
_MOST_SLOTS = 1024


class LlamaCppAdapter(Adapter):
    """llama.cpp's own server, whichever build of it runs."""

    name = "llama.cpp"
    stripped_environment = STRIPPED_ENVIRONMENT
    stops_by_leader = False
    served_lines = LLAMA_CPP_LINES

    def stage_reader(self) -> LlamaCppStageReader:
        """A reader for one start."""
        return LlamaCppStageReader()

    def is_noise(self, line: str) -> bool:
        """Return True for a log line that only answers our own polling."""
        return line.endswith("update_slots: all slots are idle")

    async def verify(self, client: httpx.AsyncClient, plan: LaunchPlan, began: float) -> Verification:
        """Prove that it answers as the plan says. Raises HostError(engine_not_ready), httpx.HTTPError."""
        return await verify_ready(
            client,
            plan.name,
            speculation=plan.speculation,
            embeddings="--embeddings" in plan.argv,
            reranking="--reranking" in plan.argv,
            began=began,
        )

    async def read(self, client: httpx.AsyncClient) -> Readings:
        """Read the server's metrics. Raises httpx.HTTPError when it does not answer."""
        return await read_status(client)

    def explain_exit(self, code: int | None, tail: Sequence[str], plan: LaunchPlan) -> Problem:
        """Why the server ended by itself, from its exit code and its last lines."""
        return explain_exit(code, tail, plan.model_path.rpartition("/")[2], plan.server_version)


async def read_status(client: httpx.AsyncClient) -> Readings:
    """Reads `/metrics` and `/slots`; what the server does not say is None.

    A slot holds its prompt and what it generated, also while it is idle (the prefix cache): `kv_tokens` is
    the sum over all slots. llama-server adds generated tokens to its counter when a request ends, so those
    of running requests are added here. `/metrics` is read first: a request that ends in between is missed
    for one reading instead of being counted twice. During a prefill both may wait for the batch to end.
    Prompts are counted when they were read, and the mean speed of those since it was last asked is a gauge
    of the server's own (metrics_flush_prompt in its server-context.cpp, b11549); 0 there is "none".
    """
    told = await answers.fetch(client, "/metrics", most=MOST_BYTES, seconds=READ_SECONDS)
    slots = await answers.fetch(client, "/slots", most=_SLOTS_BYTES, seconds=READ_SECONDS)
    # A long text is read beside the loop.
    return await asyncio.to_thread(_readings, told, slots)


def _readings(told: Body, slots: Body) -> Readings:
    metrics = Metrics(told.text if told.is_success else "", _PREFIX)
    return readings(metrics, _slots(slots), time.time())


def readings(metrics: Metrics, slots: Sequence[Mapping[str, Any]] | None, at: float) -> Readings:
    """Turns llama-server's metrics and slots into readings."""
    busy = [slot for slot in slots or () if slot.get("is_processing")]
    generated = whole(metrics.total("tokens_predicted_total"))
    if generated is not None:
        generated += sum(_decoded(slot) for slot in busy)
    speculative = slots is not None and any(slot.get("speculative") for slot in slots)
    drafts = metrics.total("spec_decode_num_drafts_total")
    drafted = metrics.total("spec_decode_num_draft_tokens_total")
    accepted = metrics.total("spec_decode_num_accepted_tokens_total")
    length = share_of(accepted, drafts)
    prompts, found = metrics.total("prompt_tokens_total"), metrics.total("prompt_tokens_cached_total")
    return Readings(
        at=at,
        slots_total=None if slots is None else len(slots),
        slots_busy=None if slots is None else len(busy),
        slots_reading=None if slots is None else sum(_decoded(slot) == 0 for slot in busy),
        requests_waiting=whole(metrics.total("requests_deferred")),
        kv_tokens=None if slots is None else sum(_number(slot, "n_prompt_tokens") for slot in slots),
        kv_capacity=None if slots is None else sum(_number(slot, "n_ctx") for slot in slots),
        kv_cached=None
        if slots is None
        else sum(_number(slot, "n_prompt_tokens") for slot in slots if slot not in busy),
        prompt_tokens_total=whole(prompts),
        # It counts those that a slot still held apart from those that it read.
        prefix_queries_total=None if prompts is None or found is None else whole(prompts + found),
        prefix_hits_total=whole(found),
        prefill_rate=_positive(metrics.total("prompt_tokens_seconds")),
        generated_tokens_total=generated,
        draft_tokens_total=whole(drafted) if speculative else None,
        draft_accepted_total=whole(accepted) if speculative else None,
        # The token that the model itself gives in each step counts: without drafts the length is 1.
        acceptance_length=1 + length if speculative and length is not None else None,
    )


def _slots(answer: Body) -> list[Mapping[str, Any]] | None:
    if not answer.is_success:
        return None
    try:
        content = answer.json()
    except ValueError:
        return None
    if not isinstance(content, list):
        return None
    return [slot for slot in content[:_MOST_SLOTS] if isinstance(slot, dict)]


def _number(slot: Mapping[str, Any], name: str) -> int:
    # A slot that never had a request says nothing of tokens: it holds none.
    value = slot.get(name, 0)
    known = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e15
    return int(value) if known else 0


def _decoded(slot: Mapping[str, Any]) -> int:
    following = slot.get("next_token")
    if isinstance(following, list) and following and isinstance(following[0], dict):
        return _number(following[0], "n_decoded")
    return _number(following, "n_decoded") if isinstance(following, dict) else 0


def _positive(value: float | None) -> float | None:
    return value if value is not None and 0 < value < 1e15 else None


async def verify_ready(
    client: httpx.AsyncClient,
    alias: str,
    *,
    speculation: str = OFF,
    embeddings: bool = False,
    reranking: bool = False,
    began: float,
) -> Verification:
    """Prove that it answers; a draft model or MTP layer has to draft, an n-gram drafter may find nothing."""
    probe = Probe(
        alias,
        _PREFIX,
        _VERIFY_SECONDS,
        embeddings,
        completion={"cache_prompt": False},
        speculation="" if speculation == OFF else speculation,
        must_draft=any(kind.startswith("draft-") for kind in speculation.split(",")),
        # The counter moves when the slot is released, a moment after the answer was sent.
        tries=20,
        reranking=reranking,
    )
    verified = await readiness.verify_ready(client, probe, began)
    told = await answers.fetch(client, "/slots", most=_SLOTS_BYTES, seconds=READ_SECONDS)
    slots = await asyncio.to_thread(_slots, told) or ()
    # The server gives a slot no more than the model was trained for, whatever it was told.
    contexts = [tokens for slot in slots if (tokens := _number(slot, "n_ctx")) > 0]
    return verified.model_copy(update={"context": min(contexts, default=verified.context)})
