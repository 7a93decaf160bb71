"""vLLM as the manager sees it: health, the proof that it answers as its plan says, readings."""

import asyncio
from collections.abc import Sequence

import httpx

from engine_host.core.outside import answers
from engine_host.engines.adapter import Adapter
from engine_host.engines.metrics import MOST_BYTES
from engine_host.engines.readiness import READ_SECONDS, Probe, verify_ready
from engine_host.engines.vllm.command import STRIPPED_ENVIRONMENT, speculation_method
from engine_host.engines.vllm.log import VllmStageReader, explain_exit
from engine_host.engines.vllm.metrics import PREFIX, readings
from engine_host.engines.vllm.served_lines import VLLM_LINES
from engine_host.protocol.engines import Readings, Verification
from engine_host.protocol.errors import Problem
from engine_host.protocol.launch.plans import LaunchPlan

# The first request may still compile kernels.
_VERIFY_SECONDS = 300.0
# Repeats itself, for a model without a tokenizer.
_PROMPT_IDS = [*range(3, 11)] * 12


class VllmAdapter(Adapter):
    """vLLM in an environment of its own."""

    name = "vllm"
    stripped_environment = STRIPPED_ENVIRONMENT
    # The API server ends its children in order; a signal to all of them at once turns that into a crash.
    stops_by_leader = True
    served_lines = VLLM_LINES

    def stage_reader(self) -> VllmStageReader:
        """A reader for one start."""
        return VllmStageReader()

    def is_noise(self, line: str) -> bool:
        """Return True for a log line that only answers our own polling."""
        return "Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.0 tokens/s" in line

    async def verify(self, client: httpx.AsyncClient, plan: LaunchPlan, began: float) -> Verification:
        """Prove that it answers; an n-gram drafter may find nothing to draft, another has to draft."""
        method = speculation_method(plan.speculation) or ""
        probe = Probe(
            plan.name,
            PREFIX,
            _VERIFY_SECONDS,
            "pooling" in plan.argv,
            completion={"prompt": _PROMPT_IDS} if "--skip-tokenizer-init" in plan.argv else {},
            speculation=method,
            reranking="classify" in plan.argv,
            must_draft=not method.startswith("ngram") and method != "suffix",
        )
        return await verify_ready(client, probe, began)

    async def read(self, client: httpx.AsyncClient) -> Readings:
        """Read vLLM's metrics. Raises httpx.HTTPError, ValueError."""
        answer = await answers.fetch(client, "/metrics", most=MOST_BYTES, seconds=READ_SECONDS)
        if not answer.is_success:
            raise ValueError(f"/metrics was answered with status {answer.status}")
        # A long text is read beside the loop.
        return await asyncio.to_thread(readings, answer.text)

    def explain_exit(self, code: int | None, tail: Sequence[str], plan: LaunchPlan) -> Problem:
        """Why vLLM ended by itself, from its exit code and its last lines."""
        return explain_exit(code, tail, plan.model_path.rpartition("/")[2], plan.server_version)
