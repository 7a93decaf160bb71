"""`sndr settings` without a host: the file is read, changed, refused and repaired."""

import json
from pathlib import Path

import pytest

from tests.unit.cli.test_commands import Sndr


def test_settings_that_are_wrong_are_told_repaired_and_set_aside(sndr: Sndr, home: Path) -> None:
    file = home / "config" / "settings.toml"
    assert sndr("settings", "check")[0] == 0
    file.parent.mkdir(parents=True)
    file.write_text("[engine]\nstreams = 3\nthreads = 0\n", encoding="utf-8")
    code, _, err = sndr("settings", "check")
    assert code == 2
    assert "line 3" in err
    assert "-threads = 0" in err
    assert sndr("settings", "get", "engine.streams")[1] == "3\n", "what is right is used"
    assert "-threads = 0" in sndr("settings", "repair", "--dry-run")[1]
    assert "threads" in file.read_text(encoding="utf-8")
    assert sndr("settings", "repair")[0] == 0
    assert sndr("settings", "check")[0] == 0
    file.write_bytes(b"\xff")
    code, _, err = sndr("settings", "repair")
    assert code == 2
    assert "cannot be repaired by itself" in err
    assert sndr("settings", "set-aside")[0] == 0
    assert not file.exists()


def test_settings_without_a_host_change_the_file(sndr: Sndr, home: Path) -> None:
    assert sndr("settings", "set", "endpoint.port", "8123")[0] == 0
    assert "8123" in (home / "config" / "settings.toml").read_text(encoding="utf-8")
    assert sndr("settings", "get", "endpoint.port")[1] == "8123\n"
    assert sndr("settings", "unset", "endpoint.port")[0] == 0
    assert sndr("settings", "get", "endpoint.port")[1] == "8020\n"


def test_an_address_that_is_not_here_is_refused_without_a_host_too(sndr: Sndr, home: Path) -> None:
    code, _, err = sndr("settings", "set", "endpoint.host", "banana.invalid")
    assert code == 2
    assert "no address of this machine" in err
    assert "anybody in the network" not in err
    assert not (home / "config" / "settings.toml").exists()


def test_a_list_of_one_is_written_without_brackets_and_doubts_are_said(sndr: Sndr, home: Path) -> None:
    code, out, err = sndr("settings", "set", "models.folders", str(home / "nowhere"))
    assert code == 0
    assert f'models.folders is ["{home}/nowhere"]' in out
    assert f"warning: There is no folder {home}/nowhere" in err


def test_wrong_setting_is_refused_and_nothing_is_saved(sndr: Sndr, home: Path) -> None:
    code, _, err = sndr("settings", "set", "endpoint.port", "many")
    assert code == 2
    assert "endpoint.port cannot be 'many': it takes a whole number from 1 to 65535." in err
    assert not (home / "config" / "settings.toml").exists()


@pytest.mark.parametrize("number", ["-3", "-0.5"])
def test_a_negative_number_is_judged_by_its_setting(sndr: Sndr, number: str) -> None:
    code, out, _ = sndr("settings", "set", "engine.threads", number, "--json")
    assert code == 2
    assert f"engine.threads cannot be {number}" in json.loads(out)["error"]["message"]
    code, _, err = sndr("settings", "set", "engine.threads", "--three")
    assert code == 2
    assert "No such option" in err


def test_the_choices_of_a_setting_are_listed_by_their_values(sndr: Sndr) -> None:
    _, _, err = sndr("settings", "set", "engine.server", "frob")
    assert "it takes auto, built, prebuilt or own" in err


@pytest.mark.parametrize("words", [("set", "engine.thread", "3"), ("unset", "engine.thread")])
def test_an_unknown_setting_is_answered_with_those_there_are(sndr: Sndr, words: tuple[str, ...]) -> None:
    code, _, err = sndr("settings", *words)
    assert code == 2
    assert "There is no setting engine.thread." in err
    assert "Known settings: endpoint.host, " in err


def test_a_mistyped_setting_is_answered_with_the_near_one(sndr: Sndr) -> None:
    code, _, err = sndr("settings", "set", "endpoint.prt", "8021")
    assert (code, "Did you mean endpoint.port" in err) == (2, True)


def test_what_only_the_file_knows_can_be_taken_out(sndr: Sndr, home: Path) -> None:
    file = home / "config" / "settings.toml"
    file.parent.mkdir()
    file.write_text("[endpoint]\nprot = 1\n", encoding="utf-8")
    assert sndr("settings", "unset", "endpoint.prot")[0] == 0
    assert "prot" not in file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("wrong", "arguments"),
    [
        ('[endpoint]\nport = "x"\n', ("unset", "endpoint.port")),
        ('[endpoint]\nport = "x"\n', ("set", "endpoint.port", "8123")),
    ],
)
def test_a_wrong_settings_file_can_be_mended(
    sndr: Sndr, home: Path, wrong: str, arguments: tuple[str, ...]
) -> None:
    file = home / "config" / "settings.toml"
    file.parent.mkdir()
    file.write_text(wrong, encoding="utf-8")
    code, _, err = sndr("settings", "check")
    assert code == 2
    assert "sndr settings unset endpoint.port" in err
    assert sndr("settings", *arguments)[0] == 0
    assert sndr("settings", "get")[0] == 0


def test_another_wrong_value_does_not_stop_a_change(sndr: Sndr, home: Path) -> None:
    file = home / "config" / "settings.toml"
    file.parent.mkdir()
    file.write_text('[endpoint]\nport = "x"\n', encoding="utf-8")
    code, _, err = sndr("settings", "set", "engine.streams", "3")
    assert code == 2
    assert "sndr settings unset endpoint.port" in err
    assert "streams = 3" in file.read_text(encoding="utf-8")
    assert sndr("settings", "unset", "endpoint.port")[0] == 0
    assert sndr("settings", "get", "engine.streams")[1] == "3\n"
