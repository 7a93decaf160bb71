"""Two engines side by side in the real window, each asked and stopped by its name."""

import pytest

from engine_host.protocol.endpoint.requests import RequestQuery
from engine_host.protocol.engines import Engine
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations import table as ops
from tests.e2e.desktop import RUNNING, Gui, host_client
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(240)


def answering() -> dict[str, Engine]:
    """The engines that answer, by their public names."""
    with host_client() as client:
        engines = client.call(ops.ENGINES).engines
        return {engine.name: engine for engine in engines if engine.state in RUNNING}


def asked(engine: Engine) -> int:
    """How many requests an engine had through the endpoint."""
    with host_client() as client:
        return len(client.call(endpoint_ops.REQUESTS, RequestQuery(engine=engine.id)).requests)


def test_a_second_engine_runs_beside_the_first(gui: Gui) -> None:
    gui.click("Start the demo model", 30)
    assert wait_until(lambda: set(answering()) == {"sndr-demo"}, 90)
    gui.open("Launch")
    gui.click("Place among the engines that run", 30)
    gui.press("Down", "Return")
    gui.wait_for_words("sndr-demo runs already under this name.", 30)
    gui.click("Start as sndr-demo-2")
    gui.wait_for_words("beside sndr-demo", 30)
    gui.click("Start", 30)
    assert wait_until(lambda: set(answering()) == {"sndr-demo", "sndr-demo-2"}, 90)
    first, second = answering()["sndr-demo"], answering()["sndr-demo-2"]
    gui.open("Home")
    gui.click("Chat with sndr-demo-2", 30)
    gui.click("Message", 30)
    gui.type("What does the json module do?")
    gui.press("Return")
    assert wait_until(lambda: bool(gui.answers() and gui.answers()[-1]), 60)
    assert (asked(first), asked(second)) == (0, 1)
    gui.wait_until_shown("Send", 60)
    gui.open("Home")
    gui.click("Stop sndr-demo", 30)
    assert wait_until(lambda: set(answering()) == {"sndr-demo-2"}, 60)
    # The one that is left is what the window is about; nothing is left to choose once the other has ended.
    gui.wait_for("Stop", 30)
    gui.wait_until_gone("Engine of all pages", 30)
    assert gui.close() == 0
