"""Fit and Presets in the real window: a verdict on other hardware, and a variation made, saved and undone."""

from pathlib import Path

import pytest

from tests.e2e.desktop import Gui
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(240)


def choose(gui: Gui, name: str, typed: str) -> None:
    """Choose an entry of a choice by typing its beginning.

    On a busy machine a pause between two letters begins the search anew; then it is typed again.
    """

    def chosen() -> bool:
        found = gui.find(name)
        return found is not None and str(found["text"]).startswith(typed)

    for _ in range(4):
        gui.click(name)
        gui.type(typed)
        gui.press("Return")
        if wait_until(chosen, 3):
            return
    raise AssertionError(f"{typed!r} cannot be chosen in {name!r}")


def test_fit_of_a_catalogue_model_on_two_cards(gui: Gui) -> None:
    gui.wait_for("Start the demo model", 30)
    gui.open("Fit")
    gui.wait_until_shown("Memory per device", 30)
    gui.wait_for_words("sndr fit", 20)
    choose(gui, "Model source", "Catalogue m")
    choose(gui, "Catalogue model", "Qwen3.6 27B")
    choose(gui, "Hardware", "Catalogue G")
    choose(gui, "Catalogue GPU", "GeForce RTX 3090")
    choose(gui, "Number of GPUs", "2")
    gui.wait_for_words("on 2 × GeForce RTX 3090", 20)
    assert wait_until(lambda: any(gui.says(word) for word in ("fits", "tight", "does not fit")), 10)
    gui.wait_for_words("--hardware '2x rtx-3090'")
    assert gui.close() == 0


def test_a_variation_is_made_saved_listed_and_undone(gui: Gui, home: Path) -> None:
    gui.wait_for("Start the demo model", 30)
    gui.open("Presets")
    gui.press("ctrl+f")
    gui.type("demo-llamacpp")
    gui.click("Make a variation")
    gui.wait_for_words("my-demo-llamacpp")
    gui.click("Context")
    gui.type("4096")
    assert wait_until(lambda: gui.says("context: 4096"), 10)
    # The Save button waits for the check of the text.
    gui.click("Save…")
    gui.wait_for("Changes to save")
    gui.wait_for_words("+  context: 4096")
    gui.press("Return")
    saved = home / "config" / "presets" / "my-demo-llamacpp.yaml"
    assert wait_until(saved.is_file, 10)
    gui.wait_for_words("own preset, saved")
    gui.click("Undo save")
    assert wait_until(lambda: not saved.exists(), 10)
    gui.wait_for_words("new, not saved yet")
    # What is not saved is kept when the window closes.
    assert gui.close() == 0
    drafts = [path for path in home.rglob("preset-drafts.json") if "my-demo-llamacpp" in path.read_text()]
    assert drafts
