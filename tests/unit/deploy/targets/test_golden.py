"""The files of every target, word for word."""

from engine_host.protocol.catalog import PresetEngine
from engine_host.protocol.launch.deploy import RenderTarget
from tests.unit.deploy.samples import wanted_of
from tests.unit.deploy.targets.golden import FOLDER, REWRITE, SELECTION, golden_files


def test_targets_are_told_what_they_were_told_before() -> None:
    made = dict(golden_files())
    kept = {
        path.relative_to(FOLDER).as_posix(): path.read_text(encoding="utf-8")
        for path in FOLDER.rglob("*")
        if path.is_file()
    }
    assert sorted(made) == sorted(kept), f"other files than before; if that is right: {REWRITE}"
    for name, text in made.items():
        assert text == kept[name], f"{name} is not as before; if that is right: {REWRITE}"


def test_each_target_and_each_engine_is_among_them() -> None:
    assert {target for targets in SELECTION.values() for target in targets} == set(RenderTarget)
    assert {wanted_of(preset_id).engine for preset_id in SELECTION} == set(PresetEngine)
