"""Another machine in the real window: from nothing to a chat that its engine answers, over real ssh."""

from pathlib import Path

import pytest

from engine_host.client.sync import ControlClient
from engine_host.protocol.operations import remote_hosts as remote
from engine_host.protocol.operations import table as ops
from engine_host.protocol.remote.hosts import AddRemoteHost
from tests.e2e.desktop import ROOT, Desktop, Gui, host_client, running_engine, window
from tests.e2e.test_window import QUESTION, ask
from tests.integration.remote.install.machines import tree
from tests.integration.remote.machines import Machines, running_machines
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(300)


def test_from_nothing_to_a_chat_answered_over_there(
    screen: Desktop, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_machines() as machines, machines.engine_host():
        monkeypatch.setenv("SNDR_SSH_CONFIG", str(machines.config))
        machines.know(machines.jump)
        with window(screen, home, ROOT / "build" / "e2e" / "hosts.png") as gui:
            _from_nothing_to_a_chat(gui, machines)
            assert gui.close() == 0


def test_a_machine_is_kept_looked_at_and_dropped_by_keyboard_alone(
    screen: Desktop, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_machines() as machines:
        monkeypatch.setenv("SNDR_SSH_CONFIG", str(machines.config))
        machines.know(machines.jump)
        with window(screen, home, ROOT / "build" / "e2e" / "hosts-by-keys.png") as gui:
            gui.wait_for("Start the demo model", 40)
            gui.open("Hosts")
            _by_keys(gui)
            assert gui.close() == 0


@pytest.mark.timeout(600)
def test_our_host_is_installed_and_removed_by_keyboard_alone(
    screen: Desktop, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_machines() as machines:
        monkeypatch.setenv("SNDR_SSH_CONFIG", str(machines.config))
        before = tree(machines.far)
        with window(screen, home, ROOT / "build" / "e2e" / "install-by-keys.png") as gui:
            gui.wait_for("Start the demo model", 40)
            with host_client() as here:
                here.call(remote.ADD_HOST, AddRemoteHost(name="gpu", destination="direct"))
            gui.open("Hosts")
            _press(gui, "Connect gpu")
            gui.wait_for("Install gpu", 60)
            _installed_by_keys(gui)
            _removed_by_keys(gui)
            assert gui.close() == 0
        assert tree(machines.far) == before


def _installed_by_keys(gui: Gui) -> None:
    """Its plan, another one without internet, a yes, and its end, which is put away."""
    _press(gui, "Install gpu")
    gui.wait_until_shown("Send the packages from here")
    gui.tab_to("Send the packages from here")
    gui.press("space")
    gui.wait_for_words("sndr host install gpu --offline")
    gui.wait_for("Install", 60)
    _press(gui, "Install")
    gui.wait_until_gone("Send the packages from here")
    assert wait_until(lambda: _focused(gui) == "Show gpu", 20), "a second Enter would cancel nothing"
    gui.wait_for("Dismiss the change of the host", 200)
    gui.wait_for("gpu: connected", 60)
    assert gui.says("Done, ")
    assert _focused(gui) == "Show gpu", "its end takes the keys from nobody"
    _press(gui, "Dismiss the change of the host")
    gui.wait_until_gone("Dismiss the change of the host")
    assert wait_until(lambda: _focused(gui) == "Details gpu", 10), "it stays on its card"


def _removed_by_keys(gui: Gui) -> None:
    """The same for its removal, in the section that offers it."""
    gui.press("Return")
    gui.wait_for("Sections of gpu")
    assert _focused(gui) == "Sections of gpu"
    gui.press(*["Right"] * 7)
    _press(gui, "Uninstall gpu")
    gui.wait_for("Remove", 60)
    assert _focused(gui) == "Cancel", "Enter alone removes nothing"
    _press(gui, "Remove")
    gui.wait_until_gone("Remove")
    gui.wait_for("Dismiss the job on the host", 100)
    gui.wait_for("Install gpu", 60)
    gui.tab_to("Install gpu")


def _by_keys(gui: Gui) -> None:
    gui.tab_to("Add host…")
    gui.press("Return")
    gui.wait_until_shown("Address")
    gui.type("gpu")
    # The list of the ssh configuration's hosts is open; nothing in it is chosen, so Enter is Add.
    gui.press("Return")
    gui.wait_for("Connect gpu")
    _press(gui, "Connect gpu")
    gui.wait_for("Accept", 40)
    gui.press("Escape")
    gui.wait_until_gone("Accept")
    gui.wait_for("Connect gpu")
    assert wait_until(lambda: _focused(gui) == "Connect gpu", 10), (
        "it is beside the button that is tried again"
    )
    gui.press("Return")
    gui.wait_for("Accept", 40)
    gui.press("Tab", "Return")
    gui.wait_for("Install gpu", 60)
    _press(gui, "Details gpu")
    gui.wait_for("Read facts gpu")
    _press(gui, "Read facts gpu")
    assert wait_until(lambda: _focused(gui) == "Read facts gpu", 30)
    _press(gui, "Install gpu")
    gui.wait_for("Install", 60)
    assert _focused(gui) == "Cancel", "Enter alone begins nothing"
    gui.press("Escape")
    gui.wait_until_gone("Install")
    assert wait_until(lambda: _focused(gui) == "Install gpu", 10)
    _press(gui, "Remove gpu")
    # The way back waits for whoever is at it.
    assert wait_until(lambda: _focused(gui) == "Undo", 10)
    gui.press("Return")
    gui.wait_for("Connect gpu")


def _press(gui: Gui, name: str) -> None:
    gui.tab_to(name)
    gui.press("Return")


def _focused(gui: Gui) -> str:
    return next((str(one["name"]) for one in gui.look() if one["focus"]), "")


def _from_nothing_to_a_chat(gui: Gui, machines: Machines) -> None:
    gui.wait_for("Start the demo model", 40)
    assert gui.find("Host of all pages") is None, "there is nothing to choose with this machine alone"
    gui.open("Hosts")
    gui.wait_for_words("No other machine yet")
    gui.click("Add host…")
    gui.wait_until_shown("Address")
    gui.type("gpu")
    # The list of hosts of the ssh configuration closes.
    gui.press("Tab")
    gui.wait_for_words("sndr host add gpu gpu")
    gui.click("Add")
    gui.wait_for("Connect gpu")
    assert wait_until(lambda: gui.find("Connect gpu") == gui.find("Connect gpu"), 10), "the cards stand"
    gui.click("Connect gpu")
    # The jump host is known, the machine is not: its key is shown, and Enter would refuse it.
    gui.wait_for("Accept", 40)
    gui.wait_for_words(machines.fingerprint(machines.target))
    gui.click("Accept")
    gui.wait_for("gpu: connected", 60)
    _look_at_everything_of_it(gui)
    gui.click("Show gpu", 40)
    gui.open("Home")
    gui.click("Start the demo model", 40)
    with ControlClient(machines.far_folders) as there:
        there.connect()
        assert wait_until(lambda: running_engine(there) is not None, 90)
        ask(gui, QUESTION)
        assert wait_until(lambda: bool(gui.answers() and gui.answers()[-1]), 60)
        asked = there.call(ops.ENGINES).engines
        assert len(asked) == 1
    _lost_and_found_again(gui, machines)
    with host_client() as here:
        assert not here.call(ops.ENGINES).engines, "nothing runs on this machine"


def _look_at_everything_of_it(gui: Gui) -> None:
    """Open its card, go through the sections by keyboard, and come back."""
    gui.click("Details gpu", 40)
    gui.wait_for("Sections of gpu")
    gui.wait_for_words("What looks wrong")
    for said in (
        "Models that can be asked", "Ours", "Models there", "Kept by you", "What changed",
        "sndr host sheet gpu", "Version there",
    ):  # fmt: skip
        gui.press("Right")
        gui.wait_for_words(said)
    gui.press("Escape")
    gui.wait_for("Details gpu")


def _lost_and_found_again(gui: Gui, machines: Machines) -> None:
    """The connection is killed: that host alone says so, its chat stays, and it comes back by itself."""
    gui.open("Hosts")
    gui.wait_for("gpu: connected", 20)
    machines.target.stop()
    gui.wait_for("gpu: reconnecting", 60)
    gui.wait_until_shown("This machine: connected")
    gui.open("Chat")
    assert wait_until(lambda: bool(gui.answers() and gui.answers()[-1]), 20), "what was answered stays"
    machines.target.start()
    gui.open("Hosts")
    gui.wait_for("gpu: connected", 60)
