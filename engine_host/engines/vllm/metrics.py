"""vLLM's `/metrics` as readings; what it does not say stays 'not measured'."""

import time
from collections.abc import Iterable, Mapping

from engine_host.engines.metrics import Metrics, share_of, whole
from engine_host.protocol.engines import Latency, Readings

PREFIX = "vllm:"
# Histograms of seconds that vLLM 0.26 and 0.32 keep, by the name that people know them by.
_LATENCIES = {
    "time_to_first_token_seconds": "TTFT",
    "inter_token_latency_seconds": "ITL",
    "request_queue_time_seconds": "queue",
    "request_prefill_time_seconds": "prefill",
    "request_decode_time_seconds": "decode",
    "e2e_request_latency_seconds": "end to end",
}


def readings(text: str) -> Readings:
    """Turns vLLM's metrics into readings. Raises ValueError for text that is not in Prometheus' format."""
    metrics = Metrics(text, PREFIX)
    running = whole(metrics.total("num_requests_running"))
    # 0 to 1; with several engines (data parallel) each has a cache of the same size.
    used = metrics.by_label("kv_cache_usage_perc", "engine")
    usage = min(max(sum(used.values()) / len(used), 0.0), 1.0) if used else None
    capacity = _capacity(metrics)
    drafts = metrics.total("spec_decode_num_drafts_total")
    accepted = metrics.total("spec_decode_num_accepted_tokens_total")
    computed = metrics.total("prompt_tokens_by_source_total", source="local_compute")
    length = share_of(accepted, drafts)
    return Readings(
        at=time.time(),
        slots_busy=running,
        requests_running=running,
        requests_waiting=whole(metrics.total("num_requests_waiting")),
        kv_usage=usage,
        kv_block=_told(metrics, "block_size"),
        kv_tokens=None if usage is None or capacity is None else round(usage * capacity),
        kv_capacity=capacity,
        # Tokens from the prefix cache were not computed: as prefill they would show a speed that is none.
        prompt_tokens_total=whole(computed if computed is not None else metrics.total("prompt_tokens_total")),
        # Both are observed when a request ends; its time is from the first step with it to its first token.
        timed_prompt_tokens=metrics.total("request_prefill_kv_computed_tokens_sum"),
        timed_prompt_seconds=metrics.total("request_prefill_time_seconds_sum"),
        generated_tokens_total=whole(metrics.total("generation_tokens_total")),
        draft_tokens_total=whole(metrics.total("spec_decode_num_draft_tokens_total")),
        draft_accepted_total=whole(accepted),
        # The token that the model itself gives in each step counts: without drafts the length is 1.
        acceptance_length=None if length is None else 1 + length,
        acceptance_by_position=_by_position(metrics, drafts),
        prefix_queries_total=whole(metrics.total("prefix_cache_queries_total")),
        prefix_hits_total=whole(metrics.total("prefix_cache_hits_total")),
        preemptions_total=whole(metrics.total("num_preemptions_total")),
        latencies=tuple(_latencies(metrics)),
    )


def _latencies(metrics: Metrics) -> Iterable[Latency]:
    for name, shown in _LATENCIES.items():
        if (latency := metrics.latency(name, shown)) is not None:
            yield latency


def _by_position(metrics: Metrics, drafts: float | None) -> tuple[float, ...]:
    accepted: Mapping[str, float] = metrics.by_label(
        "spec_decode_num_accepted_tokens_per_pos_total", "position"
    )
    if drafts is None or drafts < 1:
        return ()
    places = [place for place in accepted if place.isascii() and place.isdigit() and len(place) < 4]
    return tuple(accepted[place] / drafts for place in sorted(places, key=int))


def _capacity(metrics: Metrics) -> int | None:
    """Tokens that the KV cache holds, as vLLM itself says: blocks times block size is wrong for hybrids."""
    return _told(metrics, "kv_cache_size_tokens")


def _told(metrics: Metrics, name: str) -> int | None:
    """A whole number among the labels in which vLLM describes its cache."""
    told = metrics.label("cache_config_info", name)
    known = told is not None and told.isascii() and told.isdigit() and len(told) < 16
    return int(told) if known and told else None
