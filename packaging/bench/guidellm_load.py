"""A load that `guidellm` asks, told in the words of `vllm bench serve` as far as both measure the same.

Its inter-token latency is a request's seconds behind the first token by the tokens behind it, which is TPOT
here and there; its time per output token has the prefill in it, which nobody else's has. It has no median
of gaps.
"""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def asked(
    program: str,
    url: str,
    model: str,
    tokenizer: str,
    at_once: int,
    answer: int,
    texts: Sequence[str],
    folder: Path,
) -> dict[str, float] | None:
    """Ask these texts, so many at once, each for an answer of so many tokens; None where a request failed."""
    data, result, scenario = folder / "prompts.jsonl.json", folder / "guidellm.json", folder / "scenario.json"
    rows = [json.dumps({"prompt": text, "output_tokens_count": answer}) for text in texts]
    data.write_text("\n".join(rows), encoding="utf-8")
    backend = {
        "kind": "openai_http",
        "target": url,
        "model": model,
        # Nothing is asked that does not count, and each request has a connection of its own, as ours.
        "validate_backend": False,
        "http2": False,
        "extras": {
            "body": {"temperature": 0, "ignore_eos": True, "cache_prompt": False},
            "headers": {"Connection": "close"},
        },
    }
    spec = {
        "backend": backend,
        "profile": {"kind": "concurrent", "streams": [at_once]},
        "constraints": [{"kind": "max_requests", "count": len(texts)}],
        "data": [{"kind": "json_file", "path": str(data)}],
        "tokenizer": {"kind": "huggingface_auto", "model": tokenizer},
        "outputs": [{"kind": "json", "path": str(result)}],
    }
    scenario.write_text(json.dumps({"metadata": {"name": "agreement"}, "spec": spec}), encoding="utf-8")
    caches = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_CACHE": str(folder / "datasets"), "NO_PROXY": "*"}
    done = subprocess.run(
        [program, "run", "-c", str(scenario), "--disable-console"],
        env={**os.environ, **caches},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"guidellm ended with {done.returncode}:\n{done.stderr[-2000:]}")
    (benchmark,) = json.loads(result.read_text(encoding="utf-8"))["benchmarks"]
    answered = benchmark["requests"]["successful"] or []
    if len(answered) == len(texts):
        return figures(answered, at_once)
    print(f"guidellm: {len(answered)} of {len(texts)} requests were answered", file=sys.stderr)
    return None


def figures(answered: Sequence[Mapping[str, Any]], at_once: int) -> dict[str, float]:
    """Return the figures of its requests, by the names that `vllm bench serve` has for them."""
    first = [one["time_to_first_token_ms"] for one in answered]
    each = [one["inter_token_latency_ms"] for one in answered]
    behind = [one["output_tokens"] - 1 for one in answered]
    seconds = [one["request_end_time"] - one["request_start_time"] for one in answered]
    if at_once > 1:
        whole = max(one["request_end_time"] for one in answered)
        whole -= min(one["request_start_time"] for one in answered)
    else:
        whole = sum(seconds)
    return {
        "median_ttft_ms": statistics.median(first),
        "median_tpot_ms": statistics.median(each),
        "output_throughput": sum(one["output_tokens"] for one in answered) / whole,
        "mean_ttft_ms": statistics.fmean(first),
        "mean_itl_ms": sum(map(float.__mul__, each, map(float, behind))) / sum(behind),
        "mean_e2el_ms": 1000 * statistics.fmean(seconds),
    }
