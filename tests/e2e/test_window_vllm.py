"""vLLM with its patches in the real window: its start, its pages, an answer, and a clean end."""

from pathlib import Path

import pytest

from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.launch.plans import EngineKind, LaunchRequest, StartRequest
from engine_host.protocol.operations import table as ops
from tests.conftest import processes_of
from tests.e2e.desktop import Gui, host_client
from tests.vllm_environment import vllm_venv
from tests.waiting import wait_until

START = 200
pytestmark = pytest.mark.timeout(2 * START)


def test_patches_and_readings_of_a_running_vllm(gui: Gui, home: Path) -> None:
    gui.wait_for("Start the demo model", 30)
    request = LaunchRequest(
        model="sndr-demo",
        engine=EngineKind.VLLM,
        installation=str(vllm_venv()),
        overrides=Overrides(
            context=1024, streams=2, kv_cache_gib=0.5, eager=True, speculation="mtp", draft_tokens=3
        ),
    )
    with host_client() as client:
        plan = client.call(ops.PLAN, request)
        client.call(ops.START, StartRequest(plan=plan.id))
    gui.open("Engine")
    gui.wait_for_words("Overlay applied", START)
    gui.wait_for_words("Ready after", START)
    gui.open("Chat")
    gui.click("Message")
    gui.type("What does the json module do?")
    gui.press("Return")
    assert wait_until(lambda: bool(gui.answers() and gui.answers()[-1]), 60)
    gui.wait_until_shown("Send", 60)
    gui.open("Engine")
    gui.wait_for_words("tokens per step", 60)
    gui.wait_for_words("Latencies", 10)
    gui.open("Patches")
    gui.wait_for_words("API server", 20)
    gui.wait_for_words("Worker 0", 10)
    gui.open("Engine")
    gui.click("Stop")
    # While it stops, Relaunch stands beside it; both are gone with the engine, and Home offers a start then.
    gui.wait_until_gone("Stop", 60)
    gui.open("Home")
    gui.wait_for("Start the demo model", 60)
    assert wait_until(lambda: len(processes_of(home)) <= 3, 30), "vLLM left processes behind"
    assert gui.close() == 0
    assert wait_until(lambda: not processes_of(home), 20)
