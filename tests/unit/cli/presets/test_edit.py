"""`sndr presets vary` and `set` against a host of canned answers, which the real catalogue gave."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.package_data import presets
from engine_host.core.settings import SettingsFile
from engine_host.core.store import Store
from engine_host.operations.presets.catalog import PresetOperations
from engine_host.operations.presets.consents import PresetConsents
from engine_host.operations.presets.own import OwnPresetOperations
from engine_host.protocol.presets import EditPreset, LintPreset, SavePreset
from tests.unit.cli.fake_host import FakeHost

Sndr = Callable[..., tuple[int, str, str]]
MINE = "format: 1\nid: mine\ntitle: Mine\nextends: demo-llamacpp\nsettings:\n  context: 4096  # mine\n"


@pytest.fixture
def served(host: FakeHost, tmp_path: Path) -> PresetOperations:
    """The real catalogue behind the canned routes that edit, check and save."""
    services = PresetOperations(
        presets, tmp_path / "own", SettingsFile(tmp_path / "settings.toml"), EventLog(), lambda: ()
    )

    own = OwnPresetOperations(services, PresetConsents(Store(tmp_path / "store.sqlite")))

    def said(answer: Any) -> tuple[int, Any]:
        try:
            return 200, asyncio.run(answer).model_dump(mode="json")
        except HostError as error:
            return 409, {"error": error.problem.model_dump(mode="json")}

    def received() -> Any:
        return host.received[-1][2]

    host.answers["POST /v1/presets/edit"] = lambda: said(own.edit(EditPreset.model_validate(received())))
    host.answers["POST /v1/presets/lint"] = lambda: said(own.lint(LintPreset.model_validate(received())))
    host.answers["PUT /v1/presets/mine"] = lambda: said(
        own.save("mine", SavePreset.model_validate(received()))
    )
    host.answers["GET /v1/presets/mine/file"] = lambda: said(own.file("mine"))
    host.answers["GET /v1/presets/demo-llamacpp/file"] = lambda: said(own.file("demo-llamacpp"))
    return services


@pytest.mark.usefixtures("served")
def test_a_variation_says_only_what_is_different(sndr: Sndr, tmp_path: Path) -> None:
    code, out, _ = sndr("presets", "vary", "demo-llamacpp", "mine", "--set", "context=4096")
    assert (code, out.split(" (")[0]) == (0, "mine is saved")
    saved = (tmp_path / "own" / "mine.yaml").read_text()
    assert saved == "format: 1\nid: mine\ntitle: mine\nextends: demo-llamacpp\nsettings:\n  context: 4096\n"
    code, out, err = sndr("presets", "vary", "demo-llamacpp", "mine", "--set", "context=9000000", "--dry-run")
    assert (code, out) == (2, ""), "an error is none of the results"
    assert "at most" in err


@pytest.mark.usefixtures("served")
def test_single_values_change_and_comments_stay(sndr: Sndr, tmp_path: Path) -> None:
    path = tmp_path / "own" / "mine.yaml"
    path.parent.mkdir()
    path.write_text(MINE)
    code, out, _ = sndr("presets", "set", "mine", "context=2048", "title=My own", "--dry-run")
    assert code == 0
    assert "+  context: 2048  # mine" in out
    assert path.read_text() == MINE
    assert sndr("presets", "set", "mine", "context=2048", "streams=2")[0] == 0
    assert path.read_text() == MINE.replace("4096", "2048") + "  streams: 2\n"
    assert sndr("presets", "set", "mine", "--unset", "context")[0] == 0
    assert "context" not in path.read_text()


@pytest.mark.usefixtures("served")
def test_a_shipped_preset_stays_and_the_way_is_named(sndr: Sndr) -> None:
    code, _, err = sndr("presets", "set", "demo-llamacpp", "context=2048")
    assert code != 0
    assert "sndr presets vary demo-llamacpp my-demo-llamacpp" in err
    assert sndr("presets", "set", "mine")[0] == 2
    assert sndr("presets", "set", "mine", "context")[0] == 2


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize("wrong", ["Bad_Id", "../x", "a b", "x" * 81])
def test_a_wrong_id_is_said_in_a_sentence(sndr: Sndr, wrong: str) -> None:
    code, out, err = sndr("presets", "vary", "demo-llamacpp", wrong)
    assert (code, out) == (2, "")
    assert "cannot be the id of a preset. Use small letters, digits, dots, hyphens and underscores" in err
    code, out, _ = sndr("presets", "vary", "demo-llamacpp", wrong, "--json")
    assert (code, json.loads(out)["error"]["reason"]) == (2, "bad_request")
    code, _, err = sndr("presets", "import", "-", "--as", wrong)
    assert (code, "cannot be the id" in err) == (2, True)


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize("arguments", [("--set", "card.b.c.d.e.f.g.h.i=1"), ("--title", "\udcff")])
def test_what_makes_no_request_is_said_in_a_sentence(sndr: Sndr, arguments: tuple[str, ...]) -> None:
    code, _, err = sndr("presets", "vary", "demo-llamacpp", "mine", *arguments)
    assert code == 2
    assert err.startswith("Error: ")
    assert "Traceback" not in err


@pytest.mark.usefixtures("served")
def test_an_id_that_is_taken_points_to_changing_it(sndr: Sndr) -> None:
    assert sndr("presets", "vary", "demo-llamacpp", "mine", "--set", "context=4096")[0] == 0
    code, _, err = sndr("presets", "vary", "demo-llamacpp", "mine", "--set", "context=2048")
    assert code == 6
    assert "mine is there already" in err
    assert "$ sndr presets set mine NAME=VALUE" in err


@pytest.mark.usefixtures("served")
def test_what_is_not_set_cannot_be_unset(sndr: Sndr, tmp_path: Path) -> None:
    path = tmp_path / "own" / "mine.yaml"
    path.parent.mkdir()
    path.write_text(MINE)
    for name in ("nothere", "streams", "card.status"):
        code, _, err = sndr("presets", "set", "mine", "context=2048", "--unset", name)
        assert (code, f"{name} is not set in mine. Nothing was saved." in err) == (2, True)
    assert path.read_text() == MINE


def test_a_variation_says_what_is_different_in_it(served: PresetOperations, tmp_path: Path) -> None:
    path = tmp_path / "own" / "mine.yaml"
    path.parent.mkdir()
    path.write_text(MINE + "  streams: 1\n  flash_attention: 'off'\n")
    found = asyncio.run(served.detail("mine")).item.preset
    assert found.summary == "demo-llamacpp, with context 4,096, streams 1, flash_attention off."
    path.write_text(MINE + "summary: My own words.\n")
    assert asyncio.run(served.detail("mine")).item.preset.summary == "My own words."


def test_a_mistyped_setting_is_answered_with_the_near_ones(sndr: Sndr) -> None:
    code, _, err = sndr("presets", "set", "mine", "cntext=32768")
    assert (code, "There is no setting cntext" in err, "Did you mean context?" in err) == (2, True, True)
    assert "Did you mean context?" in sndr("launch", "p", "--set", "contxt=9")[2]


@pytest.mark.usefixtures("served")
def test_a_variation_of_a_mistyped_setting_is_answered_with_the_near_ones(sndr: Sndr) -> None:
    code, _, err = sndr("presets", "vary", "demo-llamacpp", "mine", "--set", "contxt=1")
    assert (code, "There is no setting contxt" in err, "Did you mean context?" in err) == (2, True, True)


@pytest.mark.usefixtures("served")
def test_what_was_given_is_not_said_to_stand_in_a_file(sndr: Sndr, tmp_path: Path) -> None:
    code, _, err = sndr("presets", "vary", "demo-llamacpp", "mine", "--set", "settings.contxt=1")
    assert code == 2
    assert err.startswith("error given here: settings.contxt: there is no such key.\n")
    assert "Did you mean context?" in err
    path = tmp_path / "own" / "mine.yaml"
    path.parent.mkdir()
    path.write_text(MINE)
    code, _, err = sndr("presets", "set", "mine", "settings.contxt=1")
    assert (code, err.startswith("error given here: settings.contxt: ")) == (2, True)
    path.write_text(MINE + "colour: blue\n")
    code, _, err = sndr("presets", "set", "mine", "context=1024")
    assert (code, err.startswith(f"error {path}:7: colour: ")) == (2, True), "it stands there already"


@pytest.mark.usefixtures("served")
def test_a_variation_of_no_preset_names_the_near_one(sndr: Sndr, host: FakeHost) -> None:
    near = {"reason": "not_found", "message": "There is no preset demo-llama.", "cause": "", "evidence": {}}
    host.answers["GET /v1/presets/demo-llama/file"] = (404, {"error": near})
    code, _, err = sndr("presets", "vary", "demo-llama", "mine")
    assert (code, "There is no preset demo-llama." in err) == (4, True)
    assert not [name for name, _, _ in host.received if not name.startswith("GET ")]
