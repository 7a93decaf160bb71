"""vLLM as the manager sees it: health, the proof that it answers as its plan says, readings."""

import time
from collections.abc import Sequence

import httpx

from engine_host.core.errors import HostError
from engine_host.engines.vllm.command import STRIPPED_ENVIRONMENT, speculation_method
from engine_host.engines.vllm.log import VllmStageReader, explain_exit
from engine_host.engines.vllm.metrics import Metrics, readings
from engine_host.protocol.engines import Readings, Verification
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.plans import LaunchPlan

_READ_SECONDS = 5.0
# The first request may still compile kernels.
_VERIFY_SECONDS = 300.0
# Repeats itself, so that an n-gram drafter finds something to draft.
_PROBE_WORDS = "one two three four five six seven eight " * 12
_PROBE_IDS = [*range(3, 11)] * 12
_PROBE_TOKENS = 16


class VllmAdapter:
    """vLLM in an environment of its own."""

    name = "vllm"
    stripped_environment = STRIPPED_ENVIRONMENT
    # The API server ends its children in order; a signal to all of them at once turns that into a crash.
    stops_by_leader = True

    def stage_reader(self) -> VllmStageReader:
        """A reader for one start."""
        return VllmStageReader()

    def is_noise(self, line: str) -> bool:
        """Return True for a log line that only answers our own polling."""
        return "Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.0 tokens/s" in line

    async def healthy(self, client: httpx.AsyncClient) -> bool:
        """Return True if the server's engine is alive; False while it loads or does not listen."""
        try:
            answer = await client.get("/health", timeout=_READ_SECONDS)
        except httpx.TransportError:
            return False
        return answer.status_code == httpx.codes.OK

    async def verify(self, client: httpx.AsyncClient, plan: LaunchPlan, started_at: float) -> Verification:
        """Prove that it lists the model, generates, and drafts if it should.

        An n-gram drafter that found nothing to draft in the probe leaves `speculation_moved` None; another
        drafter that drafted nothing is a failure. Raises HostError(engine_not_ready).
        """
        try:
            listed = await client.get("/v1/models", timeout=_READ_SECONDS)
            ids = [model.get("id") for model in listed.json().get("data", [])]
            if plan.name not in ids:
                raise _not_ready(f"It lists {', '.join(map(str, ids)) or 'no model'}.", {"listed": ids})
            before = await _drafts(client)
            if "pooling" in plan.argv:
                await _embeds(client, plan.name)
            else:
                await _generates(client, plan.name, tokens="--skip-tokenizer-init" in plan.argv)
            moved = await _moved(client, plan.speculation, before)
        except (ValueError, AttributeError) as error:
            raise _not_ready(f"It did not answer: {error}.", {"error": repr(error)}) from error
        return Verification(
            model_listed=True,
            token_generated=True,
            speculation_moved=moved,
            ready_after=round(time.time() - started_at, 3),
        )

    async def read(self, client: httpx.AsyncClient) -> Readings:
        """Read vLLM's metrics. Raises httpx.HTTPError, ValueError."""
        answer = await client.get("/metrics", timeout=_READ_SECONDS)
        answer.raise_for_status()
        return readings(answer.text)

    def explain_exit(self, code: int | None, tail: Sequence[str], plan: LaunchPlan) -> Problem:
        """Why vLLM ended by itself, from its exit code and its last lines."""
        return explain_exit(code, tail, plan.model_path.rpartition("/")[2], plan.server_version)


async def _generates(client: httpx.AsyncClient, alias: str, *, tokens: bool) -> None:
    body = {
        "model": alias,
        "prompt": _PROBE_IDS if tokens else _PROBE_WORDS,
        "max_tokens": _PROBE_TOKENS,
        "temperature": 0,
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


async def _drafts(client: httpx.AsyncClient) -> float | None:
    answer = await client.get("/metrics", timeout=_READ_SECONDS)
    return Metrics(answer.text).total("spec_decode_num_drafts_total") if answer.is_success else None


async def _moved(client: httpx.AsyncClient, speculation: str, before: float | None) -> bool | None:
    method = speculation_method(speculation)
    if method is None:
        return None
    now = await _drafts(client)
    if now is not None and now > (before or 0):
        return True
    if method.startswith("ngram") or method == "suffix":
        return None
    raise _not_ready(
        f"Speculation ({method}) is on, but nothing was drafted.",
        {"speculation": speculation, "drafts_before": before, "drafts_after": now},
    )


def _not_ready(detail: str, evidence: dict[str, object]) -> HostError:
    return HostError(
        Reason.ENGINE_NOT_READY,
        f"vLLM started but is not ready. {detail}",
        fix="Read its log; start it again, or without patches.",
        evidence=evidence,
    )
