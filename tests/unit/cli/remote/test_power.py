"""`sndr gpu` with a host of canned answers: the GPUs, and why there are none."""

import json
from collections.abc import Callable

from engine_host.core.diagnosis.gpu_absence import Surroundings, explained
from engine_host.protocol.language import formed
from tests.unit.cli.fake_host import FakeHost
from tests.unit.cli.start.test_run import HOST
from tests.unit.core.gpu_trace.test_format import CARD

Sndr = Callable[..., tuple[int, str, str]]


def test_the_word_alone_lists_the_gpus(host: FakeHost, sndr: Sndr) -> None:
    card = CARD.model_copy(
        update={"utilization": 0.37, "temperature": 61, "power": 210.4, "power_limit": 250}
    )
    told = {**HOST, "gpus": [card.model_dump(mode="json")], "driver": "570.1", "cuda": "12.8"}
    host.answers["GET /v1/host"] = (200, told)
    code, out, _ = sndr("gpu")
    assert code == 0
    for word in (card.name, formed(0.37, ".0%"), "61 °C", "210 of 250 W", "Driver 570.1, CUDA 12.8."):
        assert word in out, out
    said = json.loads(sndr("gpu", "--json")[1])
    assert (said["gpus"][0]["uuid"], said["driver"]) == (card.uuid, "570.1")


def test_what_the_driver_does_not_tell_is_a_dash(host: FakeHost, sndr: Sndr) -> None:
    silent = {"utilization": None, "temperature": None, "power": None, "compute_capability": None}
    card = CARD.model_copy(update=silent)
    host.answers["GET /v1/host"] = (200, {**HOST, "gpus": [card.model_dump(mode="json")]})
    assert sndr("gpu")[1].count(" - ") >= 2


def test_without_gpus_it_says_why(host: FakeHost, sndr: Sndr) -> None:
    host.answers["GET /v1/host"] = (200, {**HOST, "gpus": [], "gpu_absence": "no_driver"})
    code, out, _ = sndr("gpu")
    assert (code, out.strip()) == (0, "GPUs: none (no NVIDIA driver).")
    seen = Surroundings(module="570.86.10", library="575.51.02")
    told = explained(18, "nvmlInit", seen)[1].model_dump(mode="json")
    host.answers["GET /v1/host"] = (
        200,
        {**HOST, "gpus": [], "gpu_absence": "versions_differ", "no_gpu": told},
    )
    assert sndr("gpu")[1].splitlines() == [
        "GPUs: NVIDIA's driver library 575.51.02 and the loaded kernel module 570.86.10 differ in version.",
        "  Restart the machine: the driver was updated, and the module from before is still loaded.",
        "  $ sudo reboot",
    ]
    assert '"id": "gpu_absent"' in sndr("gpu", "--json")[1]
