"""Predicted and measured: what is compared, and what is learnt from it."""

from dataclasses import replace

import pytest

from engine_host.fit.estimate import estimate
from engine_host.fit.parts import GIB, MIB
from engine_host.fit.start import Device
from engine_host.fit.verified import REST, CorrectionScope, LoggedMemory, compare, corrections, start_words
from engine_host.fit.vllm import share
from engine_host.protocol.launch.fit import KV_TOKENS, Measured
from tests.unit.fit.test_kv import demo
from tests.unit.fit.test_llamacpp import demo_gguf
from tests.unit.fit.test_llamacpp import start as llamacpp_start
from tests.unit.fit.test_report import CARD, model, start

HERE = CorrectionScope("card", "vllm", "0.32.0", "d1")


def measured(predicted: int, logged: int, part: str = "compute", where: CorrectionScope = HERE) -> Measured:
    return Measured(
        at=1.0,
        engine=where.engine,
        version=where.version,
        gpu=where.gpu,
        patches=where.patches,
        model="m",
        part=part,
        predicted=predicted,
        measured=logged,
    )


def test_llama_cpps_buffers_are_summed_by_part() -> None:
    buffers = {
        "CPU_Mapped model": 12 * MIB,
        "CPU KV": 4 * MIB,
        "draft CPU KV": 2 * MIB,
        "CPU compute": 9 * MIB,
        "CPU output": MIB,
        "CPU something new": 5 * MIB,
    }
    settings = llamacpp_start(streams=2, drafting=True)
    found = {one.part: one for one in compare(demo_gguf(), settings, LoggedMemory(buffers), HERE, 5.0)}
    assert set(found) == {"weights", "KV cache", "compute", "output"}
    assert found["KV cache"].measured == found["KV cache"].predicted == 6 * MIB
    assert found["KV cache"].error == 0
    assert found["weights"].at == 5.0


def test_vllms_tokens_are_those_of_the_cache_that_it_made() -> None:
    settings = start(cpu=True, context=2048, devices=(Device("memory", 16 * GIB),), kv_cache=GIB)
    read = replace(model("hybrid"), shape=demo())
    logged = LoggedMemory({"KV": GIB, "model": 20 * MIB}, kv_tokens=465_920)
    (one,) = compare(read, settings, logged, HERE, 1.0)
    assert (one.part, one.predicted) == (KV_TOKENS, 465_920)


def test_what_is_left_on_a_gpu_says_what_everything_else_took() -> None:
    read, settings = model("dense"), start()
    found = estimate(read, settings)
    logged = LoggedMemory({"model": 5 * GIB, "KV": 14 * GIB}, kv_tokens=1000)
    rest = next(one for one in compare(read, settings, logged, HERE, 1.0) if one.part == REST)
    assert rest.measured == share(CARD, settings) - 19 * GIB
    learnt = {one.part: one.factor for one in corrections([rest], HERE)}
    again = estimate(read, settings, learnt)
    estimated = [part for part in again.parts if part.name not in {"weights"} and not part.beyond]
    # What vLLM does not see, it cannot teach.
    assert [part for part in again.parts if part.beyond] == [part for part in found.parts if part.beyond]
    assert sum(part.bytes for part in estimated) == pytest.approx(rest.measured, rel=0.01)


def test_a_copy_for_drafts_is_not_learnt_as_something_else() -> None:
    read, settings = model("hybrid"), start(drafting=True, eight_bit_head=True)
    buffers = {"model": 5 * GIB, "KV": 14 * GIB}

    def rest() -> Measured:
        logged = LoggedMemory(buffers, kv_tokens=1000)
        return next(one for one in compare(read, settings, logged, HERE, 1.0) if one.part == REST)

    refused = rest()
    buffers["draft head"] = GIB
    copied = rest()
    assert copied.predicted == refused.predicted
    assert refused.measured - copied.measured == GIB


def test_the_median_is_learnt_and_one_wild_start_changes_nothing() -> None:
    starts = [measured(100, logged) for logged in (110, 112, 108, 900, 111)]
    (found,) = corrections(starts, HERE)
    assert (found.part, found.factor, found.n) == ("compute", 1.11, 5)


def test_only_starts_of_the_same_place_teach() -> None:
    others = [replace(HERE, gpu="x"), replace(HERE, version="x"), replace(HERE, patches="x")]
    assert corrections([measured(100, 200, where=one) for one in others], HERE) == ()
    assert corrections([measured(100, 5000)], HERE) == (), "that is no error of an estimate"
    assert corrections([], HERE) == ()


def test_what_a_start_of_llama_cpp_teaches_is_for_starts_like_it() -> None:
    place = CorrectionScope(
        "processor", "llama.cpp", "11549", "", "m", start_words(llamacpp_start(streams=8))
    )
    one = measured(100, 110, where=place).model_copy(update={"start": place.start})
    assert place.start == "8 × 2,048 tokens, KV auto"
    assert [found.factor for found in corrections([one], place)] == [1.1]
    for other in (replace(place, model="n"), replace(place, start=start_words(llamacpp_start(streams=2)))):
        assert corrections([one], other) == ()
