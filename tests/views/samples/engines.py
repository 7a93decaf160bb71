"""Engines as the Engine page shows them: a vLLM that speculates, one that starts, one that failed."""

import time
from typing import Any

from engine_host.protocol.engines import Engine, EngineState, Latency, Readings, StageTime, Verification
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.launch.plans import Layer, ServerChoice, Setting
from engine_host.protocol.patches import PatchDecision, PatchReason, PlannedPatches
from tests.views.samples import host as samples

VLLM_STAGES = ("Overlay", "Weights", "Memory profile", "Serving")


def readings(**changes: Any) -> Readings:
    """Return the readings of vLLM after a few requests with three drafts a step."""
    return Readings(
        at=time.time(),
        slots_busy=2,
        requests_running=2,
        requests_waiting=1,
        kv_usage=0.25,
        kv_tokens=25_000,
        kv_capacity=100_000,
        prompt_tokens_total=5_000,
        generated_tokens_total=2_000,
        draft_tokens_total=300,
        draft_accepted_total=240,
        acceptance_length=3.4,
        acceptance_by_position=(0.9, 0.8, 0.7),
        prefix_queries_total=1_000,
        prefix_hits_total=400,
        preemptions_total=3,
        latencies=(
            Latency(name="TTFT", count=12, mean=0.05, p50=0.04, p95=0.1),
            Latency(name="ITL", count=400, mean=0.01, p50=0.011, p95=0.02),
            Latency(name="queue", count=12, mean=0.001, p50_below=0.3, p95_below=0.3),
            Latency(name="end to end", count=12, mean=0.6, p50=0.5, p95=1.2),
        ),
        memory=3 * samples.GIB,
    ).model_copy(update=changes)


def vllm(state: EngineState, **changes: Any) -> Engine:
    """A vLLM with MTP in a state."""
    now = time.time()
    live = state in (EngineState.READY, EngineState.BUSY)
    plan = samples.plan(
        engine="vllm",
        server=ServerChoice.VENV,
        server_version="vLLM 0.32.0 (CPU)",
        argv=("python", "-m", "vllm", "serve", "/models/demo", "--speculative-config", '{"method": "mtp"}'),
        speculation="mtp",
        installation="0.32.0-cpu",
        patches=PlannedPatches(
            digest="d1",
            chosen=("P0000", "P0001"),
            left_out=(PatchDecision(patch="hopper", reason=PatchReason.WRONG_GPU),),
        ),
        settings=(Setting(name="prefix_caching", value=True, layer=Layer.OVERRIDE),),
        command="sndr run sndr-demo --engine vllm --speculation mtp",
    )
    return samples.engine(
        state,
        engine="vllm",
        server=ServerChoice.VENV,
        server_version="vLLM 0.32.0 (CPU)",
        plan=plan,
        pid=11,
        readings=readings() if live else None,
        stages=_stages(now, live),
        created_at=now - 45,
        ready_at=now - 5 if live else None,
        verified=Verification(
            model_listed=True, token_generated=True, speculation_moved=True, ready_after=40.0
        )
        if live
        else None,
    ).model_copy(update=changes)


def failed(**changes: Any) -> Engine:
    """A vLLM that ended while it measured its memory."""
    now = time.time()
    problem = Problem(
        reason=Reason.ENGINE_CRASHED,
        message="vLLM ended: there is no memory left for the KV cache.",
        cause="The weights take more than the share that it was given.",
        fix=Fix(text="Give it more.", command="sndr run sndr-demo --engine vllm --gpu-memory 0.95"),
    )
    return vllm(
        EngineState.FAILED,
        stages=tuple(
            stage.model_copy(update={"ended_at": stage.ended_at or now}) for stage in _stages(now, False)
        ),
        ended_at=now,
        problem=problem,
        last_lines=("Loading weights took 3.1 s", "ValueError: No available memory for the cache blocks."),
    ).model_copy(update=changes)


def _stages(now: float, done: bool) -> tuple[StageTime, ...]:
    lengths = (2.0, 20.0, 10.0, 8.0) if done else (2.0, 20.0, 10.0)
    at, made = now - 45, []
    for place, (name, length) in enumerate(zip(VLLM_STAGES, lengths, strict=False)):
        ended = None if not done and place == len(lengths) - 1 else at + length
        made.append(StageTime(name=name, started_at=at, ended_at=ended))
        at += length
    return tuple(made)
