"""Fit against the real llama.cpp: what was predicted stands beside what the server printed."""

import pytest

from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.launch.fit import FitRequest, Measured, Verdict
from engine_host.protocol.operations import table as ops
from tests.integration.host.conftest import DEMO, RunningHost, wait_for
from tests.integration.host_process import sndr

# The parts that llama.cpp prints, to a hundredth of a MiB.
PRINTED = {"weights", "KV cache", "states", "compute", "output"}
ROUNDING = 0.01 * 2**20


def compared(host: RunningHost) -> dict[str, Measured]:
    """The parts of the newest start, once they are there."""

    def look() -> dict[str, Measured] | None:
        return {one.part: one for one in host.client.call(ops.FIT_STARTS).starts} or None

    return wait_for(look, "a start that was compared")


@pytest.mark.parametrize(
    "overrides",
    [
        Overrides(context=1024, streams=2),
        Overrides(context=4096, streams=4, kv_type_k="q8_0", kv_type_v="q8_0"),
        Overrides(context=2048, streams=2, speculation="draft-mtp"),
    ],
    ids=["f16", "q8_0", "drafting"],
)
def test_a_start_is_predicted_within_three_per_cent(host: RunningHost, overrides: Overrides) -> None:
    host.start(overrides=overrides)
    found = compared(host)
    assert set(found) >= PRINTED
    for part in PRINTED:
        one = found[part]
        assert one.predicted == pytest.approx(one.measured, rel=0.03, abs=3 * ROUNDING), part
    assert {one.engine for one in found.values()} == {"llama.cpp"}


def test_what_was_learnt_is_shown_with_its_number_and_outlives_the_host(host: RunningHost) -> None:
    host.start(overrides=Overrides(context=2048, streams=2))
    compared(host)
    asked = FitRequest(model=str(DEMO), cpu=True, context=2048, streams=2)
    other = host.client.call(ops.FIT, asked.model_copy(update={"streams": 8}))
    assert other.corrections == (), "it was not learnt from such a start"
    report = host.client.call(ops.FIT, asked)
    learnt = {one.part: one for one in report.corrections}
    assert learnt["compute"].n == 1
    assert learnt["compute"].factor == pytest.approx(1, abs=0.03)
    assert report.verdict is Verdict.FITS
    told = sndr("fit", str(DEMO), "--cpu", "--context", "2048", "--streams", "2")
    assert (told.code, told.err) == (0, "")
    assert "fits" in told.out
    assert "Learnt from 1 start like it here: compute" in told.out
    assert "compute" in sndr("fit", str(DEMO), "--starts").out


def test_other_hardware_and_models_of_the_catalogue(host: RunningHost) -> None:
    asked = FitRequest(model="qwen3.6-27b/int4-autoround", hardware="2x rtx-3090", context=32_768)
    report = host.client.call(ops.FIT, asked)
    assert (report.tensor_parallel, len(report.devices)) == (2, 2)
    assert report.verdict in {Verdict.FITS, Verdict.TIGHT}
    one = host.client.call(ops.FIT, asked.model_copy(update={"hardware": "rtx-3060-12gb"}))
    assert one.verdict is Verdict.DOES_NOT_FIT
    assert one.changes
    unknown = sndr("fit", "qwen3.6-27b", "--hardware", "rtx-9090", "--json")
    assert unknown.code == 4
    assert unknown.problem()["reason"] == "not_found"
