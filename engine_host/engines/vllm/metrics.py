"""vLLM's `/metrics` as readings; what it does not say stays 'not measured'."""

import time
from collections.abc import Iterable, Mapping, Sequence

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from engine_host.protocol.engines import Latency, Readings

_PREFIX = "vllm:"
# Histograms of seconds that vLLM 0.26 and 0.32 keep, by the name that people know them by.
_LATENCIES = {
    "time_to_first_token_seconds": "TTFT",
    "inter_token_latency_seconds": "ITL",
    "request_queue_time_seconds": "queue",
    "request_prefill_time_seconds": "prefill",
    "request_decode_time_seconds": "decode",
    "e2e_request_latency_seconds": "end to end",
}


class Metrics:
    """The samples of one answer, by name without the prefix; engines of one server are added up."""

    def __init__(self, text: str) -> None:
        """Raises ValueError for text that is not in Prometheus' format."""
        self._samples: dict[str, list[Sample]] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.name.startswith(_PREFIX):
                    self._samples.setdefault(sample.name.removeprefix(_PREFIX), []).append(sample)

    def total(self, name: str, **labels: str) -> float | None:
        """The sum over the samples of this name that have these labels; None when there is none."""
        found = [
            sample.value
            for sample in self._samples.get(name, ())
            if all(sample.labels.get(label) == value for label, value in labels.items())
        ]
        return sum(found) if found else None

    def by_label(self, name: str, label: str) -> dict[str, float]:
        """The samples of a name, added up by one label."""
        found: dict[str, float] = {}
        for sample in self._samples.get(name, ()):
            if (value := sample.labels.get(label)) is not None:
                found[value] = found.get(value, 0.0) + sample.value
        return found

    def label(self, name: str, label: str) -> str | None:
        """A label of the first sample of this name."""
        for sample in self._samples.get(name, ()):
            return sample.labels.get(label)
        return None

    def latency(self, name: str, shown: str) -> Latency | None:
        """A histogram in seconds; None when vLLM does not keep it."""
        count = self.total(f"{name}_count")
        if count is None:
            return None
        if count < 1:
            return Latency(name=shown, count=0)
        buckets = sorted(
            (float(bound), value) for bound, value in self.by_label(f"{name}_bucket", "le").items()
        )
        spent = self.total(f"{name}_sum")
        return Latency(
            name=shown,
            count=int(count),
            mean=None if spent is None else spent / count,
            p50=quantile(buckets, 0.50),
            p95=quantile(buckets, 0.95),
            p50_below=below(buckets, 0.50),
            p95_below=below(buckets, 0.95),
        )


def quantile(buckets: Sequence[tuple[float, float]], share: float) -> float | None:
    """A quantile of cumulative (upper bound, count) pairs, linear inside its bucket.

    As Prometheus' histogram_quantile, but None also in the first bucket: between zero and its bound nothing
    is known, and a line drawn there would be no measurement. None in the last, open one.
    """
    if not buckets or buckets[-1][1] <= 0:
        return None
    rank = share * buckets[-1][1]
    lower, under = None, 0.0
    for bound, count in buckets:
        if count >= rank:
            if lower is None or bound == float("inf"):
                return None
            inside = count - under
            return bound if inside <= 0 else lower + (bound - lower) * (rank - under) / inside
        lower, under = bound, count
    return None


def below(buckets: Sequence[tuple[float, float]], share: float) -> float | None:
    """The bound of the first bucket where that bucket holds the quantile."""
    if not buckets or buckets[-1][1] <= 0 or buckets[0][1] < share * buckets[-1][1]:
        return None
    return buckets[0][0]


def readings(text: str) -> Readings:
    """Turns vLLM's metrics into readings. Raises ValueError for text that is not in Prometheus' format."""
    metrics = Metrics(text)
    running = _whole(metrics.total("num_requests_running"))
    # 0 to 1; with several engines (data parallel) each has a cache of the same size.
    used = metrics.by_label("kv_cache_usage_perc", "engine")
    usage = sum(used.values()) / len(used) if used else None
    capacity = _capacity(metrics)
    drafts = metrics.total("spec_decode_num_drafts_total")
    accepted = metrics.total("spec_decode_num_accepted_tokens_total")
    computed = metrics.total("prompt_tokens_by_source_total", source="local_compute")
    return Readings(
        at=time.time(),
        slots_busy=running,
        requests_running=running,
        requests_waiting=_whole(metrics.total("num_requests_waiting")),
        kv_usage=usage,
        kv_tokens=None if usage is None or capacity is None else round(usage * capacity),
        kv_capacity=capacity,
        # Tokens from the prefix cache were not computed: as prefill they would show a speed that is none.
        prompt_tokens_total=_whole(
            computed if computed is not None else metrics.total("prompt_tokens_total")
        ),
        # Both are observed when a request ends; its time is from the first step with it to its first token.
        timed_prompt_tokens=metrics.total("request_prefill_kv_computed_tokens_sum"),
        timed_prompt_seconds=metrics.total("request_prefill_time_seconds_sum"),
        generated_tokens_total=_whole(metrics.total("generation_tokens_total")),
        draft_tokens_total=_whole(metrics.total("spec_decode_num_draft_tokens_total")),
        draft_accepted_total=_whole(accepted),
        # The token that the model itself gives in each step counts: without drafts the length is 1.
        acceptance_length=1 + accepted / drafts if drafts and accepted is not None else None,
        acceptance_by_position=_by_position(metrics, drafts),
        prefix_queries_total=_whole(metrics.total("prefix_cache_queries_total")),
        prefix_hits_total=_whole(metrics.total("prefix_cache_hits_total")),
        preemptions_total=_whole(metrics.total("num_preemptions_total")),
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
    if not drafts:
        return ()
    return tuple(accepted[position] / drafts for position in sorted(accepted, key=int))


def _capacity(metrics: Metrics) -> int | None:
    """Tokens that the KV cache holds, as vLLM itself says: blocks times block size is wrong for hybrids."""
    tokens = metrics.label("cache_config_info", "kv_cache_size_tokens")
    return int(tokens) if tokens and tokens.isdigit() else None


def _whole(value: float | None) -> int | None:
    return None if value is None or value != value or abs(value) > 1e15 else int(value)
