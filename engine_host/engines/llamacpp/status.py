"""Read a running llama-server's metrics, and verify that it answers as its plan says."""

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from engine_host.core.errors import HostError
from engine_host.engines.llamacpp.command import STRIPPED_ENVIRONMENT
from engine_host.engines.llamacpp.log import LlamaCppStageReader, explain_exit
from engine_host.protocol.engines import Readings, Verification
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.plans import LaunchPlan

_METRIC = re.compile(r"^llamacpp:(?P<name>\w+)(?:\{[^}]*\})? (?P<value>\S+)$", re.MULTILINE)
_READ_SECONDS = 5.0
_VERIFY_SECONDS = 120.0
# Repeats itself, so that an n-gram drafter finds something to draft.
_PROBE = "one two three four five six seven eight " * 12
_PROBE_TOKENS = 16


class LlamaCppAdapter:
    """llama.cpp's own server, whichever build of it runs."""

    name = "llama.cpp"
    stripped_environment = STRIPPED_ENVIRONMENT
    stops_by_leader = False

    def stage_reader(self) -> LlamaCppStageReader:
        """A reader for one start."""
        return LlamaCppStageReader()

    def is_noise(self, line: str) -> bool:
        """Return True for a log line that only answers our own polling."""
        return line.endswith("update_slots: all slots are idle")

    async def healthy(self, client: httpx.AsyncClient) -> bool:
        """Return True if the server's model is loaded; False while it loads or does not listen."""
        try:
            answer = await client.get("/health", timeout=_READ_SECONDS)
        except httpx.TransportError:
            return False
        return answer.status_code == httpx.codes.OK

    async def verify(self, client: httpx.AsyncClient, plan: LaunchPlan, started_at: float) -> Verification:
        """Prove that it answers as the plan says. Raises HostError(engine_not_ready), httpx.HTTPError."""
        return await verify_ready(
            client,
            plan.name,
            speculation=plan.speculation,
            embeddings="--embeddings" in plan.argv,
            started_at=started_at,
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
    metrics_answer = await client.get("/metrics", timeout=_READ_SECONDS)
    slots_answer = await client.get("/slots", timeout=_READ_SECONDS)
    metrics = parse_metrics(metrics_answer.text) if metrics_answer.is_success else {}
    slots = _slots(slots_answer)
    return readings(metrics, slots, time.time())


def readings(metrics: Mapping[str, float], slots: Sequence[Mapping[str, Any]] | None, at: float) -> Readings:
    """Turns llama-server's metrics and slots into readings."""
    busy = [slot for slot in slots or () if slot.get("is_processing")]
    generated = _whole(metrics.get("tokens_predicted_total"))
    if generated is not None:
        generated += sum(_decoded(slot) for slot in busy)
    speculative = slots is not None and any(slot.get("speculative") for slot in slots)
    drafts = metrics.get("spec_decode_num_drafts_total", 0.0)
    accepted = metrics.get("spec_decode_num_accepted_tokens_total")
    return Readings(
        at=at,
        slots_total=None if slots is None else len(slots),
        slots_busy=None if slots is None else len(busy),
        slots_reading=None if slots is None else sum(_decoded(slot) == 0 for slot in busy),
        requests_waiting=_whole(metrics.get("requests_deferred")),
        kv_tokens=None if slots is None else sum(_number(slot, "n_prompt_tokens") for slot in slots),
        kv_capacity=None if slots is None else sum(_number(slot, "n_ctx") for slot in slots),
        prompt_tokens_total=_whole(metrics.get("prompt_tokens_total")),
        prefill_rate=_positive(metrics.get("prompt_tokens_seconds")),
        generated_tokens_total=generated,
        draft_tokens_total=_whole(metrics.get("spec_decode_num_draft_tokens_total")) if speculative else None,
        draft_accepted_total=_whole(accepted) if speculative else None,
        # The token that the model itself gives in each step counts: without drafts the length is 1.
        acceptance_length=1 + accepted / drafts if speculative and drafts and accepted is not None else None,
    )


def parse_metrics(text: str) -> dict[str, float]:
    """Reads llama-server's Prometheus text, without its `llamacpp:` prefix."""
    found: dict[str, float] = {}
    for match in _METRIC.finditer(text):
        try:
            found[match["name"]] = float(match["value"])
        except ValueError:
            continue
    return found


def _slots(answer: httpx.Response) -> list[Mapping[str, Any]] | None:
    if not answer.is_success:
        return None
    try:
        content = answer.json()
    except ValueError:
        return None
    if not isinstance(content, list):
        return None
    return [slot for slot in content if isinstance(slot, dict)]


def _number(slot: Mapping[str, Any], name: str) -> int:
    # A slot that never had a request says nothing of tokens: it holds none.
    value = slot.get(name, 0)
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _decoded(slot: Mapping[str, Any]) -> int:
    following = slot.get("next_token")
    if isinstance(following, list) and following and isinstance(following[0], dict):
        return _number(following[0], "n_decoded")
    return _number(following, "n_decoded") if isinstance(following, dict) else 0


def _whole(value: float | None) -> int | None:
    # `inf` and `nan` are legal in this text, and no count.
    return int(value) if value is not None and abs(value) < 1e15 else None


def _positive(value: float | None) -> float | None:
    return value if value is not None and 0 < value < 1e15 else None


async def verify_ready(
    client: httpx.AsyncClient,
    alias: str,
    *,
    speculation: str = "off",
    embeddings: bool = False,
    started_at: float,
) -> Verification:
    """Proves that the server lists the model, generates, and drafts if it should.

    An n-gram drafter that found nothing to draft in the probe leaves `speculation_moved` None; a draft
    model or MTP layer that drafted nothing is a failure. Raises `HostError(engine_not_ready)`, and
    httpx.HTTPError when the connection breaks: only who holds the process can say whether it ended, and why.
    """
    try:
        listed = await client.get("/v1/models", timeout=_READ_SECONDS)
        ids = [model.get("id") for model in listed.json().get("data", [])]
        if alias not in ids:
            raise _not_ready(
                f"It lists {', '.join(map(str, ids)) or 'no model'}, not {alias}.", {"listed": ids}
            )
        before = await _drafted(client)
        if embeddings:
            await _embeds(client, alias)
        else:
            await _generates(client, alias)
        moved = None if speculation in {"off", "none", ""} else await _drafts(client, speculation, before)
    except (ValueError, AttributeError) as error:
        raise _not_ready(f"It did not answer: {error}.", {"error": repr(error)}) from error
    return Verification(
        model_listed=True,
        token_generated=True,
        speculation_moved=moved,
        ready_after=round(time.time() - started_at, 3),
    )


async def _generates(client: httpx.AsyncClient, alias: str) -> None:
    body = {
        "model": alias,
        "prompt": _PROBE,
        "max_tokens": _PROBE_TOKENS,
        "temperature": 0,
        "cache_prompt": False,
        "ignore_eos": True,
    }
    answer = await client.post("/v1/completions", json=body, timeout=_VERIFY_SECONDS)
    content = answer.json()
    if not answer.is_success or int(content.get("usage", {}).get("completion_tokens", 0)) < 1:
        raise _not_ready("It generated no token.", {"status": answer.status_code, "answer": content})


async def _embeds(client: httpx.AsyncClient, alias: str) -> None:
    body = {"model": alias, "input": "one two three"}
    answer = await client.post("/v1/embeddings", json=body, timeout=_VERIFY_SECONDS)
    content = answer.json()
    if not answer.is_success or not content.get("data"):
        raise _not_ready("It gave no embedding.", {"status": answer.status_code, "answer": content})


async def _drafted(client: httpx.AsyncClient) -> float | None:
    answer = await client.get("/metrics", timeout=_READ_SECONDS)
    return parse_metrics(answer.text).get("spec_decode_num_drafts_total") if answer.is_success else None


async def _drafts(client: httpx.AsyncClient, speculation: str, before: float | None) -> bool | None:
    # The counter moves when the slot is released, a moment after the answer was sent.
    for _ in range(20):
        now = await _drafted(client)
        if before is not None and now is not None and now > before:
            return True
        await asyncio.sleep(0.05)
    if before is not None and any(kind.startswith("draft-") for kind in speculation.split(",")):
        raise _not_ready(
            f"Speculation ({speculation}) is on, but nothing was drafted.",
            {"speculation": speculation, "drafts_before": before, "drafts_after": now},
        )
    return None


def _not_ready(detail: str, evidence: dict[str, Any]) -> HostError:
    return HostError(
        Reason.ENGINE_NOT_READY,
        f"The engine started but is not ready. {detail}",
        fix="Read its log; start it again, or with another server.",
        evidence=evidence,
    )
