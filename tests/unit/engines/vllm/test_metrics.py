"""vLLM's metrics; the text is what vLLM 0.32 printed, shortened."""

import pytest

from engine_host.engines.metrics import below, quantile
from engine_host.engines.vllm.metrics import readings
from engine_host.protocol.engines import Readings

METRICS = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 2.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 1.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
# TYPE vllm:prefix_cache_queries counter
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 100.0
# TYPE vllm:prefix_cache_hits counter
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 40.0
# TYPE vllm:num_preemptions counter
vllm:num_preemptions_total{engine="0",model_name="m"} 3.0
# TYPE vllm:prompt_tokens counter
vllm:prompt_tokens_total{engine="0",model_name="m"} 500.0
# TYPE vllm:prompt_tokens_by_source counter
vllm:prompt_tokens_by_source_total{engine="0",model_name="m",source="local_compute"} 460.0
vllm:prompt_tokens_by_source_total{engine="0",model_name="m",source="local_cache_hit"} 40.0
# TYPE vllm:generation_tokens counter
vllm:generation_tokens_total{engine="0",model_name="m"} 64.0
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.1",model_name="m"} 5.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.2",model_name="m"} 10.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf",model_name="m"} 10.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} 10.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="m"} 1.1
# TYPE vllm:request_prefill_time_seconds histogram
vllm:request_prefill_time_seconds_sum{engine="0",model_name="m"} 0.5
# TYPE vllm:request_prefill_kv_computed_tokens histogram
vllm:request_prefill_kv_computed_tokens_sum{engine="0",model_name="m"} 460.0
# TYPE vllm:inter_token_latency_seconds histogram
vllm:inter_token_latency_seconds_count{engine="0",model_name="m"} 0.0
vllm:inter_token_latency_seconds_sum{engine="0",model_name="m"} 0.0
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="384",engine="0",kv_cache_size_tokens="1000",num_gpu_blocks="9"} 1.0
"""
SPECULATION = """\
# TYPE vllm:spec_decode_num_drafts counter
vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} 10.0
# TYPE vllm:spec_decode_num_draft_tokens counter
vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="m"} 30.0
# TYPE vllm:spec_decode_num_accepted_tokens counter
vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="m"} 15.0
# TYPE vllm:spec_decode_num_accepted_tokens_per_pos counter
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="0"} 9.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="1"} 5.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="2"} 1.0
"""


def test_readings() -> None:
    now = readings(METRICS)
    assert (now.requests_running, now.slots_busy, now.requests_waiting) == (2, 2, 1)
    assert (now.kv_usage, now.kv_capacity, now.kv_tokens, now.kv_block) == (0.25, 1000, 250, 384)
    assert (now.prefix_queries_total, now.prefix_hits_total) == (100, 40)
    assert now.prompt_tokens_total == 460, "tokens from the prefix cache were not computed"
    assert (now.timed_prompt_tokens, now.timed_prompt_seconds) == (460, 0.5)
    assert (now.generated_tokens_total, now.preemptions_total) == (64, 3)
    assert now.draft_tokens_total is None
    assert now.acceptance_by_position == ()


def test_latencies() -> None:
    ttft, itl = readings(METRICS).latencies
    assert (ttft.name, ttft.count) == ("TTFT", 10)
    assert ttft.mean == pytest.approx(0.11)
    assert (ttft.p50, ttft.p50_below) == (None, 0.1), "in the first bucket only its bound is known"
    assert ttft.p95 == pytest.approx(0.19)
    assert ttft.p95_below is None
    assert (itl.count, itl.mean, itl.p50) == (0, None, None), "nothing happened yet: not measured"


def test_speculation() -> None:
    now = readings(METRICS + SPECULATION)
    assert (now.draft_tokens_total, now.draft_accepted_total) == (30, 15)
    assert now.acceptance_length == 2.5
    assert now.acceptance_by_position == (0.9, 0.5, 0.1)


def test_what_is_not_said_is_none() -> None:
    now = readings("")
    assert set(now.model_dump(exclude={"at"}).values()) == {None, ()}


def test_two_engines_are_added_up_and_their_caches_averaged() -> None:
    text = METRICS + (
        'vllm:num_requests_running{engine="1",model_name="m"} 3.0\n'
        'vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.75\n'
    )
    now = readings(text)
    assert now.requests_running == 5
    assert now.kv_usage == 0.5


def test_a_quantile_beyond_the_last_bound_is_not_known() -> None:
    assert quantile([(0.1, 1.0), (float("inf"), 10.0)], 0.95) is None
    assert quantile([], 0.5) is None
    assert quantile([(0.1, 0.0), (float("inf"), 0.0)], 0.5) is None


def test_a_quantile_in_the_first_bucket_is_only_known_to_be_below_its_bound() -> None:
    fast = [(0.1, 10.0), (0.2, 12.0), (float("inf"), 12.0)]
    assert (quantile(fast, 0.5), below(fast, 0.5)) == (None, 0.1)
    assert quantile(fast, 0.95) == pytest.approx(0.17)
    assert below(fast, 0.95) is None
    assert below([], 0.5) is None


def test_broken_text_is_an_error_not_a_number() -> None:
    with pytest.raises(ValueError, match=r".+"):
        readings("vllm:num_requests_running{engine= 2.0\n")


@pytest.mark.parametrize(
    "text",
    [
        "vllm:time_to_first_token_seconds_count inf",
        "vllm:time_to_first_token_seconds_count nan",
        'vllm:kv_cache_usage_perc{engine="0"} inf\nvllm:cache_config_info{kv_cache_size_tokens="9"} 1',
        'vllm:cache_config_info{kv_cache_size_tokens="²"} 1',
        f'vllm:cache_config_info{{kv_cache_size_tokens="{"9" * 5000}"}} 1',
        "vllm:spec_decode_num_drafts_total 1\n"
        'vllm:spec_decode_num_accepted_tokens_per_pos_total{position="x"} 1',
        "vllm:spec_decode_num_drafts_total 1e-320\nvllm:spec_decode_num_accepted_tokens_total 5",
        "vllm:spec_decode_num_drafts_total -1\nvllm:spec_decode_num_accepted_tokens_total 5",
        "vllm:generation_tokens_total 1e300",
    ],
)
def test_numbers_that_no_engine_counts_are_not_measured(text: str) -> None:
    now = readings(text + "\n")
    assert now.kv_tokens is None
    assert now.kv_capacity in {None, 9}
    assert now.acceptance_length is None
    assert now.generated_tokens_total is None
    assert now.acceptance_by_position == ()
    assert Readings.model_validate_json(now.model_dump_json()) == now
