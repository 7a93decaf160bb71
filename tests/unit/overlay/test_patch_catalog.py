"""The catalogue: what is wrong with one folder never hides the others, and the order is one that works."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest

from engine_host.core.errors import HostError
from engine_host.core.outside import files
from engine_host.overlay.patch_catalog import BUILT_IN, PatchCatalog
from engine_host.overlay.selection import Switches, switch_states
from engine_host.protocol.errors import Reason
from engine_host.protocol.patches import PatchKind
from tests.unit.overlay.patch_folders import load, write_patch

REBIND = """
[[rebind]]
module = "vllm.config"
target = "f"
replacement = "patch:wrap"
signature = "()"
"""


def bad_toml(place: Path) -> None:
    (write_patch(place, "bad") / "patch.toml").write_text('id = "bad\n')


def not_utf8(place: Path) -> None:
    (write_patch(place, "bad") / "patch.toml").write_bytes(b'id = "b\xff"')


def unknown_key(place: Path) -> None:
    write_patch(place, "bad", 'titel = "A test"')


def wrong_type(place: Path) -> None:
    write_patch(place, "bad", 'required = "perhaps"')


def missing_code(place: Path) -> None:
    write_patch(place, "bad", operations=REBIND)


def other_name(place: Path) -> None:
    write_patch(place, "good-too").rename(place / "bad")


def unknown_requirement(place: Path) -> None:
    write_patch(place, "bad", 'requires = ["nowhere"]')


def folder_for_a_file(place: Path) -> None:
    (place / "bad" / "patch.toml").mkdir(parents=True)


FAULTS = [
    (bad_toml, "not valid TOML"),
    (not_utf8, "not valid TOML"),
    (unknown_key, "titel: there is no such key"),
    (wrong_type, "required"),
    (missing_code, "patch:wrap"),
    (other_name, "the folder is called bad"),
    (unknown_requirement, "nowhere"),
    (folder_for_a_file, "cannot be read"),
]


@pytest.mark.parametrize(("spoil", "said"), FAULTS)
def test_a_fault_names_file_and_cause_and_hides_nothing_else(
    tmp_path: Path, spoil: Callable[[Path], None], said: str
) -> None:
    spoil(tmp_path)
    for name in ("a-good-one", "z-good-one"):
        write_patch(tmp_path, name)
    catalogue = PatchCatalog.load((tmp_path,))
    assert list(catalogue.patches) == ["a-good-one", "z-good-one"]
    (fault,) = catalogue.faults
    assert fault.folder == str(tmp_path / "bad")
    assert fault.problem.reason is Reason.PATCH_INVALID
    assert str(tmp_path / "bad" / "patch.toml") in fault.problem.message
    assert said in fault.problem.message


@pytest.mark.parametrize("spoil", [spoil for spoil, _ in FAULTS])
def test_asking_for_a_faulty_folder_gives_its_own_problem(
    tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    spoil(tmp_path)
    catalogue = PatchCatalog.load((tmp_path,))
    for ask in (catalogue.get, catalogue.named):
        with pytest.raises(HostError) as raised:
            ask("bad")
        assert raised.value.problem == catalogue.faults[0].problem


def test_a_folder_that_may_not_be_entered_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stands in for a folder of somebody else: permissions do not stop root, who may run these tests."""
    write_patch(tmp_path, "closed")
    write_patch(tmp_path, "good")
    real_stat, real_open = Path.stat, files.open_regular

    def closed(path: Path) -> None:
        if path.parent.name == "closed":
            raise PermissionError(13, "Permission denied", str(path))

    def stat(path: Path, *, follow_symlinks: bool = True) -> object:
        closed(path)
        return real_stat(path, follow_symlinks=follow_symlinks)

    def open_regular(path: Path) -> BinaryIO:
        closed(path)
        return real_open(path)

    monkeypatch.setattr(Path, "stat", stat)
    monkeypatch.setattr(files, "open_regular", open_regular)
    catalogue = PatchCatalog.load((tmp_path,))
    assert list(catalogue.patches) == ["good"]
    assert "Permission denied" in catalogue.faults[0].problem.message


def test_folders_without_a_patch_and_absent_places_are_nothing(tmp_path: Path) -> None:
    (tmp_path / "place" / "__pycache__").mkdir(parents=True)
    (tmp_path / "place" / "README").write_text("Mine.")
    catalogue = PatchCatalog.load((tmp_path / "place", tmp_path / "nowhere"))
    assert (catalogue.patches, catalogue.faults) == ({}, ())


def test_the_earlier_place_keeps_an_id_that_is_there_twice(tmp_path: Path) -> None:
    first = write_patch(tmp_path / "ours", "one")
    second = write_patch(tmp_path / "mine", "one")
    write_patch(tmp_path / "mine", "two")
    catalogue = PatchCatalog.load((tmp_path / "ours", tmp_path / "mine"))
    assert catalogue.get("one").folder == first
    assert list(catalogue.patches) == ["one", "two"]
    (fault,) = catalogue.faults
    assert fault.folder == str(second)
    assert str(first) in fault.problem.cause


def test_what_requires_a_faulty_patch_is_a_fault_too(tmp_path: Path) -> None:
    bad_toml(tmp_path)
    write_patch(tmp_path, "middle", 'requires = ["bad"]')
    write_patch(tmp_path, "top", 'requires = ["middle"]')
    write_patch(tmp_path, "after-it", 'after = ["bad", "nowhere"]\nconflicts = ["nowhere"]')
    catalogue = PatchCatalog.load((tmp_path,))
    assert list(catalogue.patches) == ["after-it"]
    assert [Path(fault.folder).name for fault in catalogue.faults] == ["bad", "middle", "top"]


@pytest.mark.parametrize("names", list(itertools.permutations(["a", "b", "c", "d"]))[::3])
def test_requirements_and_predecessors_come_first(tmp_path: Path, names: tuple[str, ...]) -> None:
    first, second, third, fourth = names
    write_patch(tmp_path, first)
    write_patch(tmp_path, second, f'requires = ["{first}"]')
    write_patch(tmp_path, third, f'after = ["{second}"]')
    write_patch(tmp_path, fourth, f'after = ["{first}"]\nrequires = ["{third}"]')
    assert tuple(load(tmp_path).patches) == names


def test_without_a_reason_the_order_is_the_alphabet(tmp_path: Path) -> None:
    for name in ("c", "a", "b"):
        write_patch(tmp_path, name)
    assert list(load(tmp_path).patches) == ["a", "b", "c"]


def test_a_cycle_names_its_members_and_no_others(tmp_path: Path) -> None:
    write_patch(tmp_path, "outside", 'requires = ["a"]')
    write_patch(tmp_path, "a", 'requires = ["b"]')
    write_patch(tmp_path, "b", 'after = ["c"]')
    write_patch(tmp_path, "c", 'requires = ["a"]')
    with pytest.raises(HostError) as raised:
        PatchCatalog.load((tmp_path,))
    assert raised.value.reason is Reason.PATCH_CYCLE
    assert raised.value.problem.evidence["cycle"] == ["a", "b", "c", "a"]
    assert "a → b → c → a" in raised.value.problem.message


def test_needed_by_follows_requirements_and_nothing_else(tmp_path: Path) -> None:
    write_patch(tmp_path, "base")
    write_patch(tmp_path, "middle", 'requires = ["base"]')
    write_patch(tmp_path, "a-top", 'requires = ["middle"]')
    write_patch(tmp_path, "later", 'after = ["base"]')
    catalogue = load(tmp_path)
    assert catalogue.needed_by("base") == ("middle", "a-top")
    assert catalogue.needed_by("middle") == ("a-top",)
    assert catalogue.needed_by("later") == ()


def test_a_name_means_a_patch_a_family_with_those_below_or_all(tmp_path: Path) -> None:
    write_patch(tmp_path, "one", family="attention")
    write_patch(tmp_path, "two", family="attention.turboquant")
    write_patch(tmp_path, "three", family="attentions")
    catalogue = load(tmp_path)
    assert catalogue.named("all") == {"one", "two", "three"}
    assert catalogue.named("attention") == {"one", "two"}
    assert catalogue.named("attention.turboquant") == {"two"}
    assert catalogue.named("three") == {"three"}
    with pytest.raises(HostError) as raised:
        catalogue.named("atention")
    assert raised.value.reason is Reason.PATCH_UNKNOWN
    problem = raised.value.problem
    assert problem.evidence["near"] == ["attention", "attentions"]
    assert problem.fix is not None
    assert "attention" in problem.fix.text


def test_the_page_tells_of_every_patch_what_it_is_and_how_it_is_switched(tmp_path: Path) -> None:
    hook = '[[hook]]\npoint = "middleware"\nfunction = "patch:Layer"\n'
    top = 'upstream_issues = ["https://example.org/1"]\nupstream_prs = ["https://example.org/2"]'
    folder = write_patch(tmp_path, "one", top, operations=hook + REBIND, code={"patch.py": ""})
    bad_toml(tmp_path)
    catalogue = PatchCatalog.load((tmp_path,))
    page = catalogue.page(7, switch_states(catalogue, Switches(off=("test",))))
    (patch,) = page.patches
    assert (page.seq, patch.folder) == (7, str(folder))
    assert (patch.switch, patch.switched_by) == ("off", "test")
    assert patch.kinds == (PatchKind.HOOK, PatchKind.REBIND)
    assert patch.upstream == ("https://example.org/1", "https://example.org/2")
    assert page.faults == catalogue.faults


def test_every_built_in_patch_loads() -> None:
    catalogue = PatchCatalog.load()
    assert catalogue.faults == ()
    assert set(catalogue.patches) == {path.parent.name for path in BUILT_IN.glob("*/patch.toml")}
    for patch in catalogue.patches.values():
        assert (patch.folder / f"test_{patch.id.replace('-', '_')}.py").is_file()


def test_more_patches_than_anybody_has_are_left_out(tmp_path: Path) -> None:
    for number in range(402):
        # Each waits for the one before: a recursion as deep as there are patches.
        before = f'requires = ["p{number - 1:03d}"]' if number else ""
        write_patch(tmp_path, f"p{number:03d}", before)
    catalogue = PatchCatalog.load((tmp_path,))
    assert len(catalogue.patches) == 400
    assert "more than 400" in catalogue.faults[0].problem.message
