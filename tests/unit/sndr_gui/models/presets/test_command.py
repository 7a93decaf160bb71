"""The command line of an edited preset, and the drafts that survive the window."""

from pathlib import Path

import pytest

from sndr_gui.models.presets.command import change_command, new_command, show_command
from sndr_gui.models.presets.drafts import Draft, Drafts

MINE = {"format": 1, "id": "mine", "title": "Mine", "extends": "demo", "settings": {"context": 4096}}


def test_a_new_variation() -> None:
    assert new_command("mine", MINE) == "sndr presets vary demo mine --title Mine --set context=4096"
    data = {**MINE, "settings": {"eager": False, "extra_arguments": ["--a"]}, "patches": {"off": ["x"]}}
    assert new_command("mine", data).endswith(
        """--set eager=false --set 'extra_arguments=["--a"]' --set 'patches.off=["x"]'"""
    )
    assert new_command("mine", None) == "sndr presets save mine.yaml"
    assert new_command("mine", {"id": "mine", "model": "m"}) == "sndr presets save mine.yaml"


def test_changes_of_a_saved_one() -> None:
    after = {**MINE, "title": "Other", "settings": {"streams": 2}}
    assert change_command("mine", MINE, after) == (
        "sndr presets set mine title=Other streams=2 --unset context"
    )
    assert change_command("mine", MINE, MINE) == show_command("mine")
    whole = {**MINE, "card": {"evidence": [{"metric": "x"}]}}
    assert change_command("mine", MINE, whole) == "sndr presets save mine.yaml --replace"
    assert change_command("mine", None, MINE) == "sndr presets save mine.yaml --replace"


def test_drafts_are_kept_until_they_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "config" / "drafts.json"
    drafts = Drafts(path)
    drafts.keep(Draft("a", "text", at=1.0))
    drafts.keep(Draft("b", "other", saved="old", digest="d", at=2.0))
    again = Drafts(path)
    assert [draft.id for draft in again.all] == ["b", "a"]
    assert again.get("b") == Draft("b", "other", "old", "d", 2.0)
    again.drop("a")
    again.drop("never")
    assert Drafts(path).get("a") is None
    assert [entry.name for entry in path.parent.iterdir()] == ["drafts.json"]


@pytest.mark.parametrize(
    "damaged", ["", "[" * 100_000, '{"drafts": [{"id": 1, "text": []}]}', '{"drafts": {}}', "[]", "\udcff"]
)
def test_a_damaged_file_of_drafts_is_put_aside(damaged: str, tmp_path: Path) -> None:
    path = tmp_path / "drafts.json"
    path.write_bytes(damaged.encode("utf-8", "surrogateescape"))
    drafts = Drafts(path)
    assert drafts.all == ()
    drafts.keep(Draft("a", "text"))
    assert Drafts(path).get("a") is not None
    assert (tmp_path / "drafts.json.damaged").read_bytes() == damaged.encode("utf-8", "surrogateescape")
