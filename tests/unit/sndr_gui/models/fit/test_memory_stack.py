"""The stack of a device's memory: where its room ends, what is said of it, and that nothing is made up."""

from engine_host.protocol import FitRequest
from engine_host.protocol.fit import FitPart, PartSource
from sndr_gui.models.fit.memory_stack import stacks_of, summary
from tests.views.samples import fit as fit_samples
from tests.views.samples.fit import GIB, MIB


def test_without_an_answer_there_is_nothing_to_draw_and_nothing_to_say() -> None:
    assert stacks_of(None) == ()
    assert summary(None) == ""


def test_the_room_ends_after_what_others_hold() -> None:
    (stack,) = stacks_of(fit_samples.report(FitRequest(model="m", context=32_768)))
    assert stack.limit == stack.taken + stack.room == 23 * GIB
    assert stack.fits
    assert stack.reach == stack.total


def test_a_stack_that_is_too_high_is_drawn_whole_and_says_what_is_missing() -> None:
    report = fit_samples.report(FitRequest(model="m", context=262_144))
    (stack,) = stacks_of(report)
    assert not stack.fits
    assert stack.reach > stack.total
    assert stack.rest == "11.6 GiB missing"
    assert "11.6 GiB missing" in summary(report)


def test_the_band_of_the_estimates_is_their_sum() -> None:
    report = fit_samples.report(FitRequest(model="m", context=32_768))
    (stack,) = stacks_of(report)
    assert stack.low < stack.needed < stack.high
    assert (stack.low, stack.high) == (18 * GIB + 200 * MIB, 18 * GIB + 1500 * MIB)
    assert "CUDA graphs 600 MiB, 200 MiB to 1.5 GiB, estimated: captured batch sizes" in stack.sentence


def test_a_part_has_its_colour_in_every_model_and_an_unknown_one_has_one_too() -> None:
    part = FitPart(name="weights", size=1, low=1, high=1, source=PartSource.FILES)
    parts = (part, part.model_copy(update={"name": "something new"}))
    report = fit_samples.report(FitRequest(model="m"), devices=(fit_samples.device(parts=parts),))
    (stack,) = stacks_of(report)
    assert [piece.colour for piece in stack.pieces] == [0, 7]


def test_of_several_devices_the_fullest_is_summed_up() -> None:
    devices = (fit_samples.device(0, GIB), fit_samples.device(1, 6 * GIB))
    report = fit_samples.report(FitRequest(model="m"), devices=devices)
    assert summary(report).startswith("22.6 GiB needed on each of 2 GPUs")
