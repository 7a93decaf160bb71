"""Causes of slowness: each from its own evidence, and none from what was not measured."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from engine_host.core.diagnosis.slow_causes import causes_of
from engine_host.core.diagnosis.work import Measured, busy_of
from engine_host.protocol.bench.diagnosis import SlowCause, SlowReason
from engine_host.protocol.host import Gpu, PcieLink, ThrottleReason
from engine_host.protocol.launch.plans import Layer, Setting
from tests.plan_samples import engine_of, plain_plan

BUSY = {"engine.e.requests.running": [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]}
GPU = Gpu(
    index=0,
    uuid="GPU-x",
    name="RTX 3090",
    memory_total=2,
    memory_used=1,
    temperature=90,
    throttled_by=(ThrottleReason.THERMAL,),
    pcie=PcieLink(generation=3, width=16, most_generation=4, most_width=16),
)


def found(
    series: Mapping[str, Sequence[float | None]],
    gpus: Sequence[Gpu] = (),
    lost: float = 0.0,
    buffers: Mapping[str, int] | None = None,
    **plan: Any,
) -> dict[SlowReason, SlowCause]:
    engine = engine_of(plain_plan(**plan), id="e", buffers=buffers or {})
    measured = Measured({**BUSY, **series}, 1.0, gpus, {"e": lost})
    return {cause.reason: cause for cause in causes_of(busy_of(engine, measured), measured)}


def all_the_time(value: float | None) -> list[float | None]:
    return [value] * 11


def test_an_engine_that_nothing_slows_down_has_no_cause() -> None:
    assert found({}) == {}, "what was not measured is no cause"
    calm = {
        "engine.e.requests.waiting": all_the_time(0.0),
        "engine.e.kv.share": all_the_time(0.5),
        "engine.e.preemptions": all_the_time(0.0),
        "engine.e.acceptance_length": all_the_time(3.0),
        "gpu.0.utilization": all_the_time(1.0),
        "gpu.0.throttled": all_the_time(0.0),
        "cpu.share": all_the_time(0.5),
        "ram.used": all_the_time(10.0),
        "ram.total": all_the_time(100.0),
    }
    assert found(calm, [GPU], speculation="mtp") == {}
    assert found({name: all_the_time(None) for name in calm}, [GPU], speculation="mtp") == {}


def test_a_moment_of_work_is_not_enough_to_judge() -> None:
    engine = engine_of(plain_plan(), id="e")
    assert not busy_of(engine, Measured({"engine.e.decode_rate": [0.0, 9.0, 9.0, 9.0, 9.0]})).enough
    assert busy_of(engine, Measured({"engine.e.decode_rate": [9.0] * 5})).enough


def test_an_engine_without_work_is_not_slow() -> None:
    engine = engine_of(plain_plan(), id="other")
    measured = Measured({**BUSY, "cpu.share": all_the_time(1.0)})
    assert list(causes_of(busy_of(engine, measured), measured)) == []


@pytest.mark.parametrize(
    ("series", "reason", "share", "words"),
    [
        ({"engine.e.requests.waiting": [0, *[0] * 5, *[3] * 5]}, SlowReason.QUEUED, 0.5, "up to 3 at once"),
        ({"engine.e.kv.share": [0, *[0.5] * 8, 0.96, 1.0]}, SlowReason.KV_FULL, 0.2, "20 % of the time"),
        ({"engine.e.preemptions": [0] * 10 + [2]}, SlowReason.PREEMPTED, 0.1, "2 requests were preempted"),
        ({"cpu.share": all_the_time(1.0)}, SlowReason.CPU_BUSY, 1.0, "All CPU cores"),
        (
            {"ram.used": all_the_time(97.0), "ram.total": all_the_time(100.0)},
            SlowReason.RAM_SHORT,
            1.0,
            "RAM was full",
        ),
    ],
)
def test_what_held_while_it_worked(
    series: Mapping[str, Sequence[float | None]], reason: SlowReason, share: float, words: str
) -> None:
    causes = found(series)
    assert set(causes) == {reason}
    assert causes[reason].share == pytest.approx(share)
    assert words in causes[reason].sentence
    assert causes[reason].fix is not None


def test_a_hot_gpu_counts_where_it_worked_alone() -> None:
    half = [0.0, *[1.0] * 4, *[0.0] * 6]
    causes = found(
        {"gpu.0.utilization": half, "gpu.0.throttled": [0.0, 1.0, 1.0, *[0.0] * 2, *[1.0] * 6]}, [GPU]
    )
    assert set(causes) == {SlowReason.THROTTLED}
    assert causes[SlowReason.THROTTLED].share == pytest.approx(0.5)
    assert causes[SlowReason.THROTTLED].evidence["temperature"] == 90.0
    assert "heat" in causes[SlowReason.THROTTLED].sentence
    narrow = GPU.model_copy(
        update={"pcie": PcieLink(generation=3, width=4, most_generation=4, most_width=16)}
    )
    assert set(found({"gpu.0.utilization": half}, [narrow])) == {SlowReason.PCIE_NARROW}
    assert found({"cpu.share": all_the_time(1.0)}, [GPU]) == {}, (
        "with a GPU a busy processor is no cause alone"
    )


def test_layers_that_do_not_lie_on_the_gpu_are_computed_on_the_processor() -> None:
    on_gpu = {"CPU model": 900, "CUDA0 model": 100, "CUDA0 KV": 60, "CUDA1 KV": 40, "CPU output": 9}
    assert found({}, [GPU], buffers=on_gpu) == {}, "the embedding of the words lies in RAM always"
    assert found({}, buffers={"CPU KV": 40}) == {}, "there is no GPU that could"
    partly = found({}, [GPU], buffers=on_gpu | {"CPU KV": 40, "draft CPU recurrent state": 60})
    assert partly[SlowReason.ON_PROCESSOR].share == pytest.approx(0.5)
    assert "50 % of its cache" in partly[SlowReason.ON_PROCESSOR].sentence
    assert found({}, buffers={"Vulkan0 KV": 1, "CPU KV": 1}).keys() == {SlowReason.ON_PROCESSOR}
    wholly = found({}, [GPU], buffers={"CPU KV": 40})[SlowReason.ON_PROCESSOR]
    assert "Nothing of it lies on a GPU" in wholly.sentence
    assert wholly.fix is not None
    assert wholly.fix.command == "sndr engine list"


def test_prefix_drafts_and_eager() -> None:
    hits = {"engine.e.prefix_hits": all_the_time(0.2)}
    assert found(hits) == {}, "a new prompt is no miss"
    missed = found(hits, lost=5.0)[SlowReason.PREFIX_MISSED]
    assert missed.share == pytest.approx(0.5)
    assert "20 % of the prompts" in missed.sentence
    drafts = {"engine.e.acceptance_length": all_the_time(1.1)}
    assert found(drafts) == {}, "it drafts nothing"
    refused = found(drafts, speculation="mtp")[SlowReason.DRAFTS_REFUSED]
    assert refused.fix is not None
    assert refused.fix.settings == {"speculation": "off"}
    eager = Setting(name="eager", value=True, layer=Layer.OVERRIDE)
    slow = found({}, settings=(eager,))
    assert set(slow) == {SlowReason.EAGER}
    assert slow[SlowReason.EAGER].share is None, "what it costs was not measured"


def test_no_share_and_no_reason_is_told_that_was_not_measured() -> None:
    once = {"engine.e.preemptions": [0.0] * 5 + [1.0] + [0.0] * 5}
    assert found(once)[SlowReason.PREEMPTED].share == pytest.approx(0.1)
    seldom = Measured({"engine.e.requests.running": [1.0] * 40, "engine.e.preemptions": [1.0] + [0.0] * 39})
    engine = engine_of(plain_plan(), id="e")
    (cause,) = (
        one for one in causes_of(busy_of(engine, seldom), seldom) if one.reason is SlowReason.PREEMPTED
    )
    assert cause.share == pytest.approx(1 / 40)
    # It ran below its clocks then, and does not now: nobody knows what it was.
    over = GPU.model_copy(update={"throttled_by": ()})
    slowed = {"gpu.0.utilization": all_the_time(1.0), "gpu.0.throttled": all_the_time(1.0)}
    assert "(now: " in found(slowed, [GPU])[SlowReason.THROTTLED].sentence
    assert "(now" not in found(slowed, [over])[SlowReason.THROTTLED].sentence


def test_what_can_be_tried_has_its_command() -> None:
    eager = Setting(name="eager", value=True, layer=Layer.USER)
    causes = found(
        {"engine.e.preemptions": all_the_time(1.0), "cpu.share": all_the_time(1.0)},
        buffers={"CPU KV": 3, "CUDA0 KV": 1},
        settings=(eager,),
        command="sndr run m --set eager=true",
        streams=8,
    )
    commands = {reason: cause.fix.command for reason, cause in causes.items() if cause.fix is not None}
    assert str(commands[SlowReason.PREEMPTED]).endswith("--streams 4")
    assert commands[SlowReason.EAGER] == "sndr run m --set eager=false"
    assert commands[SlowReason.CPU_BUSY] == "sndr top"
    assert str(commands[SlowReason.ON_PROCESSOR]).startswith("sndr fit ")
