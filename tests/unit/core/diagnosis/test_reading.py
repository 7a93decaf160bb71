"""The reading of a record: who ended it, what held memory, how the curves ended, which knob."""

from typing import Any

import pytest

from engine_host.core.diagnosis.kill import judged
from engine_host.core.diagnosis.reading import read
from engine_host.protocol.bench.autopsy import Autopsy, Ending
from engine_host.protocol.errors import Reason
from engine_host.protocol.host import Gpu, GpuHolder
from engine_host.protocol.launch.fit import Change, DeviceFit, FitPart, FitReport, PartSource, Verdict
from engine_host.protocol.launch.plans import EngineKind
from tests.unit.core.diagnosis.samples import GIB, problem, record, series

FULL = (series("ram.used", 9.0, 98.0), series("ram.total", 100.0, 100.0))
CALM = (series("ram.used", 9.0, 10.0), series("ram.total", 100.0, 100.0))
FIT = FitReport(
    model="m",
    engine=EngineKind.LLAMA_CPP,
    kv="f16",
    context=128,
    streams=1,
    tensor_parallel=1,
    verdict=Verdict.DOES_NOT_FIT,
    changes=(Change(id="kv", text="Take q8_0.", saves=1 << 30, fits=True, option="--kv q8_0"),),
)

STAGES = ({"name": "Start process", "started_at": 1.0},)
JUDGED = judged(problem(exit_code=-9), "while it served", 0, 0.97, "sndr run m")


def killed(**fields: Any) -> Autopsy:
    return record(exit_code=-9, signal="SIGKILL", **fields)


@pytest.mark.parametrize(
    ("made", "ending", "words"),
    [
        (killed(oom_kills=1, series=CALM), Ending.MAIN_MEMORY, "out-of-memory killer ended 1 process"),
        (killed(oom_kills=0, series=CALM), Ending.KILLED, "Somebody ended it"),
        (killed(oom_kills=0, series=FULL), Ending.MAIN_MEMORY, "systemd-oomd or earlyoom"),
        (killed(series=FULL), Ending.MAIN_MEMORY, "RAM was 98 % full"),
        (killed(series=CALM), Ending.KILLED, "RAM was 10 % full"),
        (killed(), Ending.KILLED, "is not known"),
        (record(), Ending.MAIN_MEMORY, "It ended. That was while it served."),
        (record(plan={"gpus": ["GPU-1"]}), Ending.GPU_MEMORY, "while it served"),
        (record(engine={"ready_at": None, "stages": STAGES}), Ending.MAIN_MEMORY, "while it started"),
        (record(engine={"ready_at": None}), Ending.REFUSED, "It ended."),
        (
            record(exit_code=-11, signal="SIGSEGV", engine={"problem": problem(Reason.ENGINE_CRASHED)}),
            Ending.CRASHED,
            "It ended. That was",
        ),
        (record(engine={"problem": problem(Reason.PORT_IN_USE)}), Ending.EXITED, "It ended."),
        (record(engine={"problem": None}), Ending.EXITED, "It was ended while it served."),
        (killed(oom_kills=0, engine={"problem": JUDGED}), Ending.MAIN_MEMORY, "RAM was 97 % full"),
        (killed(engine={"problem": problem(ending="\x1b")}), Ending.KILLED, "is not known"),
    ],
)
def test_the_end_is_told_from_what_was_measured(made: Autopsy, ending: Ending, words: str) -> None:
    reading = read(made)
    assert reading.ending is ending
    assert words in reading.sentence


def test_a_limit_that_was_met_is_told_apart_from_a_machine_that_is_full() -> None:
    others = Change(id="free_memory", text="End the other programs.", saves=9 << 30, fits=True)
    fit = FIT.model_copy(update={"changes": (others, *FIT.changes)})
    limited = read(killed(oom_kills=1, series=CALM, fit=fit))
    assert "So a limit was met, and not the machine's RAM." in limited.sentence
    assert limited.knobs[0].text.startswith("Raise the limit of the container or service")
    assert [knob.text for knob in limited.knobs[1:]] == ["Take q8_0.", "Do less."]
    full = read(killed(oom_kills=1, series=FULL, fit=fit))
    assert "limit" not in full.sentence
    assert full.knobs[0].text == "End the other programs."
    told = judged(problem(exit_code=-9), "while it served", 1, 0.3, "sndr run m")
    assert told.cause.startswith("It reached the limit")
    assert told.fix is not None
    assert told.fix.text.startswith("Raise the limit of the container or service")
    assert told.fix.text.endswith("Do less.")
    # Where the limit is known, nobody is sent to look for one, and it is said once.
    fitting = FIT.model_copy(update={"verdict": Verdict.FITS, "changes": ()})
    knobs = read(killed(oom_kills=1, series=CALM, fit=fitting, engine={"problem": told})).knobs
    assert [knob.text.partition(":")[0] for knob in knobs] == [
        limited.knobs[0].text.partition(":")[0],
        "Do less.",
    ]
    # It is known by its code: another version, or another language, says it in other words.
    reworded = told.model_copy(update={"fix": told.fix.model_copy(update={"text": "Give more. Do less."})})
    knobs = read(killed(oom_kills=1, series=CALM, fit=fitting, engine={"problem": reworded})).knobs
    assert [knob.text for knob in knobs[1:]] == ["Do less."]
    # Nothing else is advised than the limit: it stands once, and no empty line below it.
    alone = judged(problem(exit_code=-9).model_copy(update={"fix": None}), "while it served", 1, 0.3, "x")
    assert len(read(killed(oom_kills=1, series=CALM, fit=fitting, engine={"problem": alone})).knobs) == 1


def test_the_knob_is_what_fits_and_nobody_is_told_to_turn_one_that_ended_nothing() -> None:
    knobs = read(record(fit=FIT)).knobs
    assert (knobs[0].text, knobs[0].saves, knobs[0].enough) == ("Take q8_0.", 1 << 30, True)
    assert knobs[0].fix is not None
    assert knobs[0].fix.command == "sndr fit m --kv q8_0"
    assert knobs[-1].text == "Do less."
    assert read(killed(oom_kills=0, series=CALM, fit=FIT)).knobs == ()


def test_a_start_that_should_have_fit_met_a_limit_and_shows_what_it_wanted() -> None:
    part = FitPart(name="KV cache", size=7, low=7, high=7, source=PartSource.FORMULA)
    device = DeviceFit(name="processor", total=9, taken=0, room=9, parts=(part,), needed=7, free_after=2)
    fitting = FIT.model_copy(update={"verdict": Verdict.FITS, "changes": (), "devices": (device,)})
    starting = {"ready_at": None, "buffers": {"CPU model": 5}, "stages": STAGES}
    reading = read(record(fit=fitting, engine=starting))
    assert [part.what for part in reading.held] == ["CPU model", "wanted: processor KV cache"]
    assert "look for a limit" in reading.knobs[0].text
    served = read(record(fit=fitting, engine={**starting, "ready_at": 1.0}))
    assert [part.what for part in served.held] == ["CPU model"]


def test_a_full_kv_cache_before_the_end_is_named() -> None:
    work = (
        series("engine.e.requests.running", 1, 1, unit="requests"),
        series("engine.e.kv.share", 0.99, 1.0),
    )
    assert any("KV cache was full" in knob.text for knob in read(record(series=work)).knobs)


def test_the_curve_before_the_end_goes_a_minute_back() -> None:
    rising = series("ram.used", *[float(second) for second in range(200)], None)
    (curve,) = read(record(series=(rising,))).curve
    assert (curve.before, curve.before_seconds, curve.last, curve.highest) == (139.0, 60.0, 199.0, 199.0)
    assert read(record(series=(series("ram.used", None), series("ram.total")))).curve == ()


def test_memory_that_was_given_back_before_the_end_was_noticed_counts_as_held() -> None:
    given_back = (series("ram.used", 9.0, 99.0, 12.0), series("ram.total", 100.0, 100.0, 100.0))
    reading = read(killed(series=given_back))
    assert reading.ending is Ending.MAIN_MEMORY
    assert [curve.last for curve in reading.curve] == [99.0]
    long_ago = (series("ram.used", 99.0, *[12.0] * 9), series("ram.total", *[100.0] * 10))
    assert read(killed(series=long_ago)).ending is Ending.KILLED


def test_what_held_memory_and_what_nobody_measured() -> None:
    gpu = Gpu(
        index=0,
        uuid="GPU-1",
        name="a card",
        memory_total=24,
        memory_used=9,
        holders=(GpuHolder(pid=7, name="game", memory=9), GpuHolder(pid=8)),
    )
    made = record(
        engine={"buffers": {"CPU KV": 1, "CPU model": 5}, "stages": STAGES},
        gpus=(gpu,),
        series=(series("gpu.0.memory.used", 23 * GIB),),
    )
    reading = read(made)
    assert [part.what for part in reading.held] == [
        "CPU model",
        "CPU KV",
        "VRAM of GPU 0 before the end",
        "GPU 0: game (pid 7), not this engine",
    ]
    assert any("before its first readings" in what for what in reading.not_measured)
    assert "RAM" in reading.not_measured
