"""Chrome traces summed up by kernel, also such as are none, and the starts that allow a profiler."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from engine_host.bench.gpu.traces import own_times, summary
from engine_host.core.errors import HostError
from engine_host.operations.measurements.profiles import traces_of
from engine_host.protocol.errors import Reason
from tests.plan_samples import plain_plan
from tests.unit.operations.measurements.test_bench import engine


def span(name: str, begin: float, takes: float, kind: str = "cpu_op", thread: int = 1) -> dict[str, Any]:
    return {"ph": "X", "cat": kind, "name": name, "ts": begin, "dur": takes, "pid": 1, "tid": thread}


def test_an_operation_counts_without_those_inside_it() -> None:
    spans = [
        span("outer", 0, 100),
        span("inner", 10, 30),
        span("leaf", 10, 20),
        span("inner", 50, 10),
        span("other", 0, 40, thread=2),
    ]
    spent: dict[str, float] = {}
    for name, begin, end in own_times(spans):
        spent[name] = spent.get(name, 0.0) + end - begin
    assert spent == {"outer": 60, "inner": 20, "leaf": 20, "other": 40}


def test_kernels_of_the_gpu_count_where_there_are_any(tmp_path: Path) -> None:
    events: list[object] = [span("aten::mm", 0, 900), "odd", {"ph": "X", "cat": "kernel"}, {"ph": "M"}]
    path = tmp_path / "a.pt.trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    on_cpu = summary(path, 3)
    assert (on_cpu.of, [one.name for one in on_cpu.kernels]) == ("operations of the processor", ["aten::mm"])
    assert (on_cpu.kernels[0].ms, on_cpu.kernels[0].share) == (0.3, 1.0)
    events += [span("gemm\x1b[31m", 0, 3000, "kernel"), span("attention", 3000, 1000, "kernel")]
    packed = tmp_path / "a.pt.trace.json.gz"
    packed.write_bytes(gzip.compress(json.dumps({"traceEvents": events}).encode()))
    on_gpu = summary(packed, 2)
    assert [(one.ms, one.share) for one in on_gpu.kernels] == [(1.5, 0.75), (0.5, 0.25)]
    assert on_gpu.busy_ms == 2.0


@pytest.mark.parametrize("content", [b"", b"{}", b'{"traceEvents": []}', b"[" * 9000, b'{"traceEvents": 7}'])
def test_what_is_no_trace_is_said(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(HostError) as raised:
        summary(path, 1)
    assert raised.value.reason is Reason.BAD_REQUEST


@pytest.mark.parametrize(
    ("kind", "words", "folder"),
    [
        ("vllm", ['--profiler-config={"profiler":"torch","torch_profiler_dir":"/t"}'], "/t"),
        ("vllm", ["--profiler-config", '{"profiler":"torch","torch_profiler_dir":"/t"}'], "/t"),
        ("vllm", ["--profiler-config", '{"profiler":"cuda"}'], ""),
        ("vllm", ["--profiler-config={"], ""),
        ("vllm", [], ""),
        ("llama.cpp", [], ""),
    ],
)
def test_only_a_start_that_names_the_profiler_can_be_profiled(
    kind: str, words: list[str], folder: str
) -> None:
    plan = plain_plan(name="a").model_copy(update={"argv": ("vllm", *words)})
    one = engine("a").model_copy(update={"engine": kind, "plan": plan})
    if folder:
        assert traces_of(one) == Path(folder)
        return
    with pytest.raises(HostError) as raised:
        traces_of(one)
    assert raised.value.reason is Reason.UNSUPPORTED
    assert (raised.value.problem.fix is not None) == (kind == "vllm")
    # No start of llama.cpp would allow one.
    assert ("start" in str(raised.value)) == (kind == "vllm")
