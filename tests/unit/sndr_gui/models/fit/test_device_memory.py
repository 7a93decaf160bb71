"""The device of a device's memory: where its room ends, what is said of it, and that nothing is made up."""

from engine_host.protocol.launch.fit import FitPart, FitRequest, PartSource
from sndr_gui.models.fit.device_memory import device_memories, summary
from tests.views.samples import fit as fit_samples
from tests.views.samples.fit import GIB, MIB


def test_without_an_answer_there_is_nothing_to_draw_and_nothing_to_say() -> None:
    assert device_memories(None) == ()
    assert summary(None) == ""


def test_the_room_ends_after_what_others_hold() -> None:
    (device,) = device_memories(fit_samples.report(FitRequest(model="m", context=32_768)))
    assert device.limit == device.taken + device.usable == 23 * GIB
    assert device.fits
    assert device.extent == device.total


def test_a_stack_that_is_too_high_is_drawn_whole_and_says_what_is_missing() -> None:
    report = fit_samples.report(FitRequest(model="m", context=262_144))
    (device,) = device_memories(report)
    assert not device.fits
    assert device.extent > device.total
    assert device.remainder == "11.6 GiB missing"
    assert "11.6 GiB missing" in summary(report)


def test_the_band_of_the_estimates_is_their_sum() -> None:
    report = fit_samples.report(FitRequest(model="m", context=32_768))
    (device,) = device_memories(report)
    assert device.low < device.needed < device.high
    assert (device.low, device.high) == (18 * GIB + 200 * MIB, 18 * GIB + 1500 * MIB)
    assert "CUDA graphs 600 MiB, 200 MiB to 1.5 GiB, estimated: captured batch sizes" in device.sentence


def test_a_part_has_its_colour_in_every_model_and_an_unknown_one_has_one_too() -> None:
    part = FitPart(name="weights", size=1, low=1, high=1, source=PartSource.FILES)
    parts = (part, part.model_copy(update={"name": "something new"}))
    report = fit_samples.report(FitRequest(model="m"), devices=(fit_samples.device(parts=parts),))
    (device,) = device_memories(report)
    assert [part.colour for part in device.parts] == [0, 7]


def test_of_several_devices_the_fullest_is_summed_up() -> None:
    devices = (fit_samples.device(0, GIB), fit_samples.device(1, 6 * GIB))
    report = fit_samples.report(FitRequest(model="m"), devices=devices)
    assert summary(report).startswith("22.6 GiB needed on each of 2 GPUs")
