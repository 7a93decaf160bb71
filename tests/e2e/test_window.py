"""The main job in the real window: start, ask, stop, close; and the same when a part is killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from engine_host.client import HostError
from engine_host.client.sync import ControlClient
from engine_host.protocol.engines import Engine
from engine_host.protocol.launch.plans import LaunchRequest, StartRequest
from engine_host.protocol.operations import table as ops
from tests.e2e.desktop import EngineGauge, Gui, host_client, running_engine
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(240)
QUESTION = "What does the json module do?"


def start_slow(client: ControlClient, model: Path) -> Engine:
    """Have the window's host run the slow model."""
    plan = client.call(ops.PLAN, LaunchRequest(model=str(model), name="slow-model"))
    client.call(ops.START, StartRequest(plan=plan.id))
    assert wait_until(lambda: running_engine(client) is not None, 60)
    engine = running_engine(client)
    assert engine is not None
    return engine


def ask(gui: Gui, text: str) -> None:
    """Type a question into the chat, as its user does."""
    gui.open("Chat")
    gui.click("Message")
    gui.type(text)
    gui.press("Return")


def wait_for_growing_answer(gui: Gui) -> None:
    """See the answer's text grow twice."""
    lengths: list[int] = []

    def grown() -> bool:
        answers = gui.answers()
        if answers and answers[-1] and (not lengths or len(answers[-1]) > lengths[-1]):
            lengths.append(len(answers[-1]))
        return len(lengths) >= 3

    assert wait_until(grown, 60), lengths


def test_main_job_with_the_bundled_model(gui: Gui) -> None:
    began = gui.click("Start the demo model", 30)
    gui.wait_for("Stop", 60)
    with host_client() as client:
        engine = running_engine(client)
        assert engine is not None
        assert engine.verified is not None
        assert engine.verified.token_generated
        print(f"ready {time.monotonic() - began:.1f} s after the click")
    ask(gui, QUESTION)
    assert wait_until(lambda: bool(gui.answers() and gui.answers()[-1]), 30)
    gui.wait_for_words(QUESTION)
    # Chats are in the window's memory, and must not reach the disk in a core dump.
    assert psutil.Process(gui.process.pid).rlimit(psutil.RLIMIT_CORE)[0] <= 1
    # With an answer under way, Stop asks once more.
    gui.wait_until_shown("Send", 60)
    gui.open("Home")
    gui.click("Stop")
    gui.wait_for("Start sndr-demo again", 20)
    assert gui.close() == 0


def test_a_preset_is_chosen_with_the_keyboard_moved_with_its_slider_and_started(gui: Gui) -> None:
    gui.wait_for("Start the demo model", 30)
    gui.open("Launch")
    gui.wait_for("List of presets", 30)
    gui.press("ctrl+f")
    gui.type("demo-llamacpp")
    gui.press("Down")
    gui.wait_for_words("Demo model on llama.cpp", 20)
    gui.wait_for_words("sndr launch demo-llamacpp", 20)
    gui.wait_for("Context: tokens for one stream: 8,192", 20)
    # Bar and legend of the memory push the slider down when they come; with both answers nothing moves.
    gui.wait_for_words("Ready to start.", 30)
    gui.wait_for_words("Largest for 2 streams: 8,192 tokens", 30)
    # The middle of the groove, and from there with the keys.
    gui.click("Context: tokens for one stream: 8,192")
    gui.press("Right", "Right", "Left")
    gui.wait_for_words("sndr launch demo-llamacpp --context ", 20)
    gui.wait_for_words("free", 20)
    gui.wait_for("Start", 20)
    gui.press("ctrl+Return")
    gui.wait_for("Open chat", 60)
    with host_client() as client:
        engine = running_engine(client)
        assert engine is not None
        assert engine.plan.preset == "demo-llamacpp"
        assert 1024 <= engine.plan.context < 8192
        assert f"--context {engine.plan.context}" in engine.plan.command
    gui.click("Open chat")
    gui.click("Message")
    gui.type(QUESTION)
    gui.press("Return")
    assert wait_until(lambda: bool(gui.answers() and gui.answers()[-1]), 30)
    assert gui.close() == 0


def test_stop_in_mid_answer_ends_the_work_at_once(gui: Gui, slow_model: Path) -> None:
    gui.wait_for("Start the demo model", 30)
    with host_client() as client:
        gauge = EngineGauge(start_slow(client, slow_model))
    ask(gui, "Go on for ever")
    wait_for_growing_answer(gui)
    assert gauge.busy()
    clicked = gui.click("Stop")
    while gauge.busy():
        assert time.monotonic() < clicked + 5
    stopped_after = time.monotonic() - clicked
    total = gauge.generated_total()
    time.sleep(0.5)
    assert gauge.generated_total() == total
    assert not gauge.busy()
    gauge.close()
    # The exact figure is a matter of `make bench`; an answer that is not stopped goes on for minutes.
    assert stopped_after < 1, f"{stopped_after * 1000:.0f} ms"
    kept = gui.answers()[-1]
    assert kept
    # What came is kept, and the chat goes on.
    gui.wait_until_shown("Send")
    assert gui.close() == 0


def test_window_killed_in_mid_answer_takes_everything_along(gui: Gui, slow_model: Path) -> None:
    gui.wait_for("Start the demo model", 30)
    with host_client() as client:
        engine = start_slow(client, slow_model)
        host = client.call(ops.HOST).pid
    ask(gui, "Go on for ever")
    wait_for_growing_answer(gui)
    gui.process.kill()
    gui.process.wait(5)
    assert engine.pid is not None
    pids = (host, engine.pid)
    assert wait_until(lambda: not any(map(is_alive, pids)), 15)


def test_host_killed_in_mid_answer_is_replaced_and_its_engine_ended(gui: Gui, slow_model: Path) -> None:
    gui.wait_for("Start the demo model", 30)
    with host_client() as client:
        engine = start_slow(client, slow_model)
        host = client.call(ops.HOST).pid
    ask(gui, "Go on for ever")
    wait_for_growing_answer(gui)
    os.kill(host, signal.SIGKILL)
    assert engine.pid is not None
    pid = engine.pid
    assert wait_until(lambda: not is_alive(pid), 15)
    gui.open("Home")
    gui.wait_for("Start the demo model", 30)
    with host_client() as client:
        assert client.call(ops.HOST).pid != host
        assert running_engine(client) is None
    # The answer so far is still there.
    gui.open("Chat")
    assert gui.answers()[-1]
    assert gui.close() == 0


def test_engine_killed_in_mid_answer_is_told_with_its_reason(gui: Gui, slow_model: Path) -> None:
    gui.wait_for("Start the demo model", 30)
    with host_client() as client:
        engine = start_slow(client, slow_model)
    ask(gui, "Go on for ever")
    wait_for_growing_answer(gui)
    assert engine.pid is not None
    os.kill(engine.pid, signal.SIGKILL)
    gui.open("Home")
    gui.wait_for("Relaunch", 20)
    gui.wait_for_words("SIGKILL while it served", 10)
    assert gui.close() == 0


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be collected does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("way", ["click", "Enter"])
def test_a_host_that_a_command_ended_is_started_again_when_asked(gui: Gui, way: str) -> None:
    """It was started anew within seconds, whoever had ended it."""
    gui.wait_for("Start the demo model", 30)
    with host_client() as client:
        before = client.call(ops.HOST).pid
    done = subprocess.run(
        [sys.executable, "-m", "engine_host", "quit"],
        env=gui.desktop.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "The open window starts another one when you click “Start again” there." in done.stdout
    gui.wait_for_words("A command ended the engine host (sndr quit)", 30)
    gui.wait_for_words("The engine host was ended", 30)
    assert not is_alive(before)
    # It stays ended for longer than the window would wait before another try.
    gui.open("Logs")
    gui.open("Home")
    with pytest.raises(HostError):
        host_client()
    # A command that brings a host for itself alone leaves it so.
    for _ in range(2):
        subprocess.run(
            [sys.executable, "-m", "engine_host", "models"],
            env=gui.desktop.environment,
            capture_output=True,
            timeout=60,
            check=True,
        )
        gui.wait_for_words("The engine host was ended", 30)
    with pytest.raises(HostError):
        host_client()
    if way == "click":
        gui.click("Start again")
    else:
        gui.tab_to("Start again")
        gui.press("Return")
    gui.wait_for("Start the demo model", 60)
    gui.wait_for_words("engine host connected", 30)
    with host_client() as client:
        assert client.call(ops.HOST).pid != before
