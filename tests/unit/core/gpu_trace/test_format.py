"""A trace is written and read as it was; what is no trace is refused with a sentence that names the line."""

import json
from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.core.gpu_trace import format as gpu_trace
from engine_host.core.gpu_trace.format import Trace, TraceWriter, check, head_of
from engine_host.protocol.errors import Reason
from engine_host.protocol.host import Gpu, GpuHolder, PcieLink, ThrottleReason

CARD = Gpu(
    index=3,
    uuid="GPU-6f1c",
    name="Made-up 24",
    memory_total=24 << 30,
    memory_used=2 << 30,
    utilization=0.25,
    power=101.5,
    throttled_by=(ThrottleReason.IDLE,),
    pcie=PcieLink(generation=4, width=16),
    holders=(GpuHolder(pid=7, name="python", memory=1 << 30),),
)
LATER = CARD.model_copy(update={"memory_used": 3 << 30, "power": None, "holders": ()})


def written(path: Path, *moments: tuple[float, Gpu], processes: bool = True) -> Path:
    writer = TraceWriter(head_of([CARD], 5.0, "sndr", "580", "13.0"), processes=processes)
    path.write_bytes(writer.first() + b"".join(writer.line(t, [gpu]) for t, gpu in moments))
    return path


def test_what_was_recorded_is_read_again_without_what_names_the_card(tmp_path: Path) -> None:
    path = written(tmp_path / "t", (0.0, CARD), (0.5, LATER), (1.0, LATER))
    assert b"6f1c" not in path.read_bytes()
    # What did not change is not written again.
    assert json.loads(path.read_bytes().splitlines()[3]) == {"t": 1.0, "gpus": [{}]}
    trace = Trace(path)
    assert (trace.head.driver, trace.head.recorded_at) == ("580", 5.0)
    assert trace.next() == 0.0
    assert trace.gpus() == (CARD.model_copy(update={"uuid": "recorded-0"}),)
    assert trace.next() == 0.5
    assert trace.gpus() == (LATER.model_copy(update={"uuid": "recorded-0"}),)
    assert [*trace.moments()] == [1.0]
    trace.rewind()
    assert trace.next() == 0.0
    trace.close()
    assert check(path)[1:] == (3, 1.0)
    assert b"python" not in written(tmp_path / "u", (0.0, CARD), processes=False).read_bytes()


def test_half_a_line_at_the_end_is_what_a_kill_leaves(tmp_path: Path) -> None:
    path = written(tmp_path / "t", (0.0, CARD), (0.5, LATER))
    path.write_bytes(path.read_bytes()[:-9])
    assert check(path)[1:] == (1, 0.0)


HEAD = {"sndr_gpu_trace": 1, "recorded_at": 1.0, "gpus": [{"index": 0, "name": "x", "memory_total": 1}]}
MOMENT = {"t": 0.0, "gpus": [{"memory_used": 1}]}
TWO = [HEAD["gpus"][0]] * 2  # type: ignore[index]
HOSTILE = {
    "nothing": (b"", "no trace"),
    "another file": (b"\x7fELF" + b"\0" * 99, "no trace"),
    "a long line": (b'{"sndr_gpu_trace": 1, "x": "' + b"y" * (300 << 10), "no moment"),
    "only a head": ([HEAD], "nothing was recorded"),
    "a later version": ([{**HEAD, "sndr_gpu_trace": 2}, MOMENT], "version 2"),
    "a version that is none": ([{**HEAD, "sndr_gpu_trace": "new"}, MOMENT], "no version"),
    "no GPU": ([{**HEAD, "gpus": []}, MOMENT], "gpus"),
    "too many": ([{**HEAD, "gpus": [{**TWO[0], "index": n % 64} for n in range(65)]}, MOMENT], "gpus"),
    "one number twice": ([{**HEAD, "gpus": TWO}, MOMENT], "two GPUs"),
    "another count": ([HEAD, {"t": 0, "gpus": []}], "line 2, tells of 0 GPUs"),
    "back in time": ([HEAD, MOMENT, MOMENT], "line 3, goes back in time"),
    "no number": (json.dumps(HEAD).encode() + b'\n{"t": 0, "gpus": [{"power": NaN}]}\n', "power"),
    "a share of nine": ([HEAD, {"t": 0, "gpus": [{"utilization": 9.0}]}], "utilization"),
    "an unknown key": ([HEAD, {"t": 0, "gpus": [{"gone": 1}]}], "gone"),
    "a time that never comes": ([HEAD, {"t": 1e300, "gpus": [{}]}], "t"),
    "deep": (json.dumps(HEAD).encode() + b"\n" + b"[" * 100_000 + b"\n", "no moment"),
    "a line too long": (json.dumps(HEAD).encode() + b"\n" + b" " * (300 << 10) + b"\n", "256 KiB"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_trace_is_refused_with_a_sentence(tmp_path: Path, name: str) -> None:
    content, said = HOSTILE[name]
    path = tmp_path / "t"
    path.write_bytes(
        content
        if isinstance(content, bytes)
        else b"".join(json.dumps(one).encode() + b"\n" for one in content)
    )
    with pytest.raises(HostError) as refused:
        check(path)
    assert refused.value.reason is Reason.SETTING_INVALID
    assert said in refused.value.problem.message
    assert len(refused.value.problem.message) < 400


def test_what_is_no_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HostError, match="There is no trace") as caught:
        check(tmp_path / "none")
    assert caught.value.reason is Reason.NOT_FOUND
    for path in (tmp_path, Path("/dev/zero")):
        with pytest.raises(HostError, match="cannot be opened"):
            check(path)
    path = written(tmp_path / "t", (0.0, CARD))
    monkeypatch.setattr(gpu_trace, "LARGEST", 10)
    with pytest.raises(HostError, match="larger than"):
        check(path)


def test_other_gpus_end_a_recording() -> None:
    writer = TraceWriter(head_of([CARD], 5.0, "sndr", None, None), processes=True)
    with pytest.raises(HostError, match="others than when"):
        writer.line(0.0, [])
