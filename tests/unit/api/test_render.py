"""Starts written down over the control API, from the catalogue that ships."""

import json
from typing import Any

import pytest
import yaml

from engine_host.protocol.errors import ErrorAnswer, Reason
from engine_host.protocol.launch.deploy import Rendering, RenderTarget
from tests.unit.api.door import Door, door
from tests.unit.asynchronous import run

pytestmark = pytest.mark.usefixtures("home")
PRESET = "qwen3.6-27b-k8v4-2x24"


async def rendering(opened: Door, **body: Any) -> Rendering:
    answer = await opened.client.post("/v1/render", json=body)
    assert answer.status_code == 200, answer.text
    return Rendering.model_validate_json(answer.text)


async def refused(opened: Door, **body: Any) -> ErrorAnswer:
    answer = await opened.client.post("/v1/render", json=body)
    assert not answer.is_success
    return ErrorAnswer.model_validate_json(answer.text)


@pytest.mark.parametrize("target", list(RenderTarget))
def test_a_preset_for_hardware_of_the_catalogue(target: RenderTarget) -> None:
    async def test() -> None:
        async with door() as opened:
            made = await rendering(
                opened, launch={"preset": PRESET}, target=target.value, hardware="rtx-3090"
            )
            assert made.target is target
            assert made.name == "sndr-qwen3-6-27b-k8v4-2x24"
            assert "turboquant_k8v4" in made.files[0].text or "turboquant_k8v4" in "".join(
                file.text for file in made.files
            )
            assert made.start
            assert made.stop

    run(test())


def test_settings_gpus_and_port_are_taken_over() -> None:
    async def test() -> None:
        async with door() as opened:
            uuids = ["GPU-aaaaaaaa-1", "GPU-bbbbbbbb-2"]
            made = await rendering(
                opened,
                launch={"preset": PRESET, "overrides": {"context": 65536}, "name": "mine"},
                target="compose",
                hardware="rtx-3090",
                gpus=uuids,
                port=9000,
                address="0.0.0.0",
            )
            engine = yaml.safe_load(made.files[0].text)["services"]["engine"]
            words = engine["command"]
            assert words[words.index("--max-model-len") + 1] == "65536"
            assert words[words.index("--served-model-name") + 1] == "mine"
            device = engine["deploy"]["resources"]["reservations"]["devices"][0]
            assert device["device_ids"] == [f"${{SNDR_GPU_{n}:-{one}}}" for n, one in enumerate(uuids)]
            assert engine["ports"] == ["${SNDR_ADDRESS:-0.0.0.0}:${SNDR_PORT:-9000}:9000"]
            assert "render.open-to-network" in {one.id for one in made.findings}

    run(test())


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        ({"speculation": "mpt"}, "vLLM does not know the speculation mpt."),
        ({"speculation": '{"method": "mpt"}'}, "vLLM does not know the speculation mpt."),
        ({"threads": 4}, "vllm does not know threads."),
    ],
)
def test_what_a_start_would_refuse_is_not_written_down(overrides: dict[str, Any], says: str) -> None:
    async def test() -> None:
        async with door() as opened:
            launch = {"preset": PRESET, "overrides": overrides}
            error = (await refused(opened, launch=launch, target="docker", hardware="rtx-3090")).error
            assert (error.reason, error.message) == (Reason.SETTING_INVALID, says)

    run(test())


def test_what_contradicts_itself_is_refused() -> None:
    async def test() -> None:
        async with door() as opened:
            body = {"launch": {"preset": PRESET}, "target": "docker", "hardware": "rtx-3090", "count": 1}
            assert (await refused(opened, **body)).error.reason is Reason.PRESET_CONFLICT
            body = {"launch": {"model": "a.gguf"}, "target": "docker", "hardware": "rtx-3090"}
            assert (await refused(opened, **body)).error.reason is Reason.BAD_REQUEST
            body = {"launch": {"preset": "no-such-preset"}, "target": "docker"}
            assert (await refused(opened, **body)).error.reason is Reason.NOT_FOUND
            for wrong in ({"target": "abacus"}, {"address": "example.com; rm"}, {"gpus": ["0"]}, {"port": 0}):
                body = {"launch": {"preset": PRESET}, "target": "docker", **wrong}
                assert (await refused(opened, **body)).error.reason is Reason.BAD_REQUEST, json.dumps(wrong)

    run(test())


def test_a_preset_that_cannot_run_here_is_written_for_elsewhere() -> None:
    async def test() -> None:
        async with door() as opened:
            made = await rendering(opened, launch={"preset": PRESET}, target="kubernetes")
            first = made.findings[0]
            assert first.id == "render.not-here"
            assert first.fix is None

    run(test())
