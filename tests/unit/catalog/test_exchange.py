"""A preset leaves as one file and comes in as the same, or not at all."""

import pytest

from engine_host.catalog.exchange import ImportResult, check_import, export
from engine_host.catalog.resolve import resolve
from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason
from tests.unit.catalog.small import MODEL, PRESET, PROFILE, VARIATION, Small


def carry_over(
    text: str, there: Small, new_id: str | None = None, *, replacing: bool = False
) -> ImportResult:
    imported = check_import(there.read(), text, there.place, new_id, replacing=replacing)
    for path, content in imported.writes:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    assert there.read().faults == ()
    return imported


@pytest.fixture
def there(tmp_path_factory: pytest.TempPathFactory) -> Small:
    return Small(tmp_path_factory.mktemp("there"))


def test_a_variation_comes_over_as_it_is(small: Small, there: Small) -> None:
    small.write_own("mine", VARIATION)
    imported = carry_over(export(small.read(), "mine"), there)
    assert [path.name for path, _ in imported.writes] == ["mine.yaml"]
    assert imported.unchanged == (
        "shipped/presets/small-one.yaml",
        "shipped/models/small.yaml",
        "shipped/profiles/latency.yaml",
    )
    ours, theirs = resolve(small.read(), "mine"), resolve(there.read(), "mine")
    assert [(one.name, one.value) for one in ours.settings] == [
        (one.name, one.value) for one in theirs.settings
    ]
    again = check_import(there.read(), export(there.read(), "mine"), there.place)
    assert again.writes == ()
    assert len(again.unchanged) == 4


def test_models_and_profiles_of_ones_own_come_along(small: Small, there: Small) -> None:
    small.write_own("models/tiny", MODEL.replace("id: small\n", "id: tiny\n"))
    small.write_own("profiles/quick", PROFILE.replace("id: latency", "id: quick"))
    text = PRESET.replace("small-one", "tiny-one").replace("model: small", "model: tiny")
    small.write_own("tiny-one", text.replace("profile: latency", "profile: quick"))
    small.write_own("tiny-mine", VARIATION.replace("mine", "tiny-mine").replace("small-one", "tiny-one"))
    assert small.read().faults == ()
    imported = carry_over(export(small.read(), "tiny-mine"), there)
    assert sorted(path.relative_to(there.own).as_posix() for path, _ in imported.writes) == [
        "models/tiny.yaml",
        "profiles/quick.yaml",
        "tiny-mine.yaml",
        "tiny-one.yaml",
    ]
    assert there.read().preset("tiny-mine").model == "tiny"


def test_nothing_is_overwritten_unasked(small: Small, there: Small) -> None:
    small.write_own("mine", VARIATION)
    there.write_own("mine", VARIATION.replace("4096", "8192"))
    text = export(small.read(), "mine")
    with pytest.raises(HostError) as caught:
        carry_over(text, there)
    problem = caught.value.problem
    assert problem.reason is Reason.CONFLICT
    assert "differs in settings (own/mine.yaml)" in problem.message
    assert there.read().variations["mine"].entry.settings.context == 8192
    carry_over(text, there, "mine-too")
    assert there.read().ids() == ("mine", "mine-too", "small-one")
    carry_over(text, there, replacing=True)
    assert there.read().variations["mine"].entry.settings.context == 4096


def test_the_programs_own_is_never_replaced(small: Small, there: Small) -> None:
    small.write("presets/small-one", PRESET.replace("16384", "2048"))
    text = export(small.read(), "small-one")
    with pytest.raises(HostError, match=r"differs in settings \(shipped/presets/small-one.yaml\)") as caught:
        carry_over(text, there, replacing=True)
    assert caught.value.reason is Reason.CONFLICT
    carry_over(text, there, "small-two")
    assert there.read().preset("small-two").settings.context == 2048


def test_another_version_of_a_shipped_model_is_told(small: Small, there: Small) -> None:
    small.write_own("mine", VARIATION)
    there.write("models/small", MODEL.replace("licence: Apache-2.0", "licence: MIT"))
    imported = carry_over(export(small.read(), "mine"), there)
    assert [fault.message for fault in imported.faults] == [
        "small in the imported file differs in licence; the program's own is used"
    ]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("sndr_preset: 1", "sndr_preset: 2", "no exported preset of this format"),
        ("sndr_preset: 1\n", "", "no exported preset of this format"),
        ("sndr_preset: 1", "sndr_preset: 1\nscript: x", "script: there is no such key"),
        ("\nprofile:", "\nprofil:", "profil: there is no such key"),
        ("  extends: small-one", "  extends: gone", "extends: there is no preset gone"),
        ("    context: 4096", "    context: 64", "preset.settings.context"),
        ("    context: 4096", "    context: 65536", "at most 32768"),
        ("  id: mine", "  id: ../../mine", "preset.id"),
        ("  id: mine", "  id: small-one", "is there already"),
    ],
)
def test_a_spoilt_file_is_refused_and_nothing_is_written(
    small: Small, there: Small, old: str, new: str, says: str
) -> None:
    small.write_own("mine", VARIATION)
    text = export(small.read(), "mine")
    assert old in text
    with pytest.raises(HostError) as caught:
        carry_over(text.replace(old, new, 1), there)
    assert says in caught.value.problem.message
    assert there.read().ids() == ("small-one",)


def test_a_fault_in_an_imported_file_has_its_line(small: Small, there: Small) -> None:
    small.write_own("mine", VARIATION)
    text = export(small.read(), "mine").replace("    context: 4096", "    contxt: 4096")
    with pytest.raises(HostError) as caught:
        carry_over(text, there)
    lines = text.splitlines()
    assert lines[caught.value.problem.evidence["line"] - 1] == "    contxt: 4096"


def test_a_preset_by_itself_is_sent_to_where_it_is_taken(small: Small) -> None:
    with pytest.raises(HostError) as caught:
        check_import(small.read(), VARIATION, small.place)
    assert caught.value.problem.fix is not None
    assert "sndr presets save" in caught.value.problem.fix.text
