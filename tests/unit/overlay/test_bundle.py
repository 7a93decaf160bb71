"""Bundles on disk: named by what is in them, complete, and removed when they are old."""

import json
import os
import time
from collections.abc import Collection
from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.engines.temporary_folder import HEADERS
from engine_host.engines.vllm.command import KERNELS
from engine_host.overlay.bundle import Bundle, prune, write_bundle
from engine_host.overlay.inject.settle import settle
from engine_host.overlay.loaded_patch import LoadedPatch
from engine_host.protocol.errors import Reason
from tests.unit.full_disk import small_disk
from tests.unit.overlay.fake_vllm import hook, rebind, text, write_patch

EDIT = text("vllm.scheduler", "a", "b")


@pytest.fixture
def patch(tmp_path: Path) -> LoadedPatch:
    return write_patch(tmp_path / "patches", "one-edit", EDIT, "VALUE = 1\n")


def write(tmp_path: Path, *patches: LoadedPatch, vllm: str = "0.32.0") -> Bundle:
    return write_bundle(patches, vllm, tmp_path / "cache")


def test_it_is_complete_and_named_by_its_digest(patch: LoadedPatch, tmp_path: Path) -> None:
    bundle = write(tmp_path, patch)
    files = {str(path.relative_to(bundle.folder)) for path in bundle.folder.rglob("*") if path.is_file()}
    assert bundle.folder.name == bundle.digest
    assert {
        "manifest.json",
        "sitecustomize.py",
        "sndr_overlay/start.py",
        "sndr_overlay/targets.py",
        "sndr_overlay_patches/__init__.py",
        "sndr_overlay_patches/one_edit/patch.py",
        "sndr_overlay-1.dist-info/entry_points.txt",
    } <= files
    manifest = json.loads((bundle.folder / "manifest.json").read_text())
    assert manifest["format"] == 1
    assert (manifest["vllm"], manifest["digest"]) == ("0.32.0", bundle.digest)
    assert [one["id"] for one in manifest["patches"]] == ["one-edit"]
    targets: dict[str, object] = {}
    exec((bundle.folder / "sndr_overlay" / "targets.py").read_text(), targets)
    assert targets["TARGETS"] == {"vllm.scheduler"}


def test_a_bundle_that_is_there_is_used_and_counts_as_used(patch: LoadedPatch, tmp_path: Path) -> None:
    first = write(tmp_path, patch)
    before = (first.folder / "manifest.json").stat()
    os.utime(first.folder, (0, 0))
    assert write(tmp_path, patch) == first
    assert (first.folder / "manifest.json").stat().st_ino == before.st_ino
    assert first.folder.stat().st_mtime > 0
    assert [path.name for path in first.folder.parent.iterdir()] == [first.digest]


def test_what_a_crash_left_is_replaced(patch: LoadedPatch, tmp_path: Path) -> None:
    first = write(tmp_path, patch)
    (first.folder / "manifest.json").unlink()
    assert write(tmp_path, patch) == first
    assert (first.folder / "manifest.json").is_file()


@pytest.mark.parametrize(
    "name", ["sndr_overlay/start.py", "sndr_overlay_patches/one_edit/patch.py", "sitecustomize.py", ""]
)
@pytest.mark.parametrize("damage", ["gone", "changed"])
def test_a_bundle_of_which_a_part_is_not_as_it_was_is_replaced(
    patch: LoadedPatch, tmp_path: Path, name: str, damage: str
) -> None:
    first = write(tmp_path, patch)
    path = first.folder / (name or "manifest.json")
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(content[:-3])
    assert write(tmp_path, patch) == first
    assert path.read_bytes() == content
    assert [path.name for path in first.folder.parent.iterdir()] == [first.digest]


def test_the_digest_depends_on_all_that_matters_and_nothing_else(patch: LoadedPatch, tmp_path: Path) -> None:
    place = tmp_path / "patches"
    other = write_patch(place, "two-edits", EDIT)
    plain = write(tmp_path, patch).digest
    assert write(tmp_path, patch, vllm="0.32.0+cpu").digest == plain
    (patch.folder / "test_one_edit.py").write_text("")
    (patch.folder / "README.md").write_text("")
    (patch.folder / "__pycache__").mkdir()
    (patch.folder / "__pycache__" / "patch.py").write_text("")
    assert write(tmp_path, patch).digest == plain
    changed = {plain, write(tmp_path, patch, other).digest, write(tmp_path, other, patch).digest}
    (patch.folder / "kernels").mkdir()
    (patch.folder / "kernels" / "attention.py").write_text("X = 1")
    changed.add(write(tmp_path, patch).digest)
    (patch.folder / "patch.py").write_text("VALUE = 2\n")
    changed.add(write(tmp_path, patch).digest)
    changed.add(write(tmp_path, patch, vllm="0.26.0").digest)
    changed.add(write(tmp_path, write_patch(place, "one-edit", text("vllm.scheduler", "a", "c"))).digest)
    assert len(changed) == 7


def test_operations_for_other_versions_stay_out(tmp_path: Path) -> None:
    old = EDIT.replace("[[text]]", '[[text]]\nvllm = "<0.30"')
    patch = write_patch(tmp_path / "patches", "both", old + rebind("vllm.worker", "f", "()"))
    for vllm, found in (("0.26.0", (1, 1)), ("0.32.0+cpu", (0, 1)), ("0.29.0rc1", (1, 1))):
        manifest = json.loads((write(tmp_path, patch, vllm=vllm).folder / "manifest.json").read_text())
        (spec,) = manifest["patches"]
        assert (len(spec["text"]), len(spec["rebind"])) == found


def test_the_environment_and_the_command_line(tmp_path: Path) -> None:
    patch = write_patch(
        tmp_path / "patches", "hooks-all", hook("middleware", "patch:Header") + hook("endpoint_plugins")
    )
    bundle = write(tmp_path, patch)
    variables = bundle.environment(tmp_path / "ledger", in_own_venv=True)
    assert set(variables) == {
        "SNDR_OVERLAY",
        "SNDR_OVERLAY_LEDGER",
        "SNDR_OVERLAY_SHADOW",
        "VLLM_CACHE_ROOT",
        "VLLM_PLUGINS",
    }
    assert variables["VLLM_PLUGINS"] == "sndr,sndr-hooks-all"
    assert variables["VLLM_CACHE_ROOT"].endswith(bundle.digest)
    assert bundle.environment(tmp_path, in_own_venv=False)["PYTHONPATH"] == str(bundle.folder)
    assert bundle.arguments == (
        "--additional-config",
        json.dumps({"sndr_patches": bundle.digest}),
        "--middleware",
        "sndr_overlay.middleware.hooks_all__patch__Header",
    )
    entries = (bundle.folder / "sndr_overlay-1.dist-info" / "entry_points.txt").read_text()
    assert "[vllm.endpoint_plugins]\nsndr-hooks-all = sndr_overlay.endpoints:" in entries
    assert "general_plugins" not in entries


def model_infos(bundle: Bundle) -> Path:
    return (bundle.cache_root / "modelinfos").resolve(strict=True)


def test_what_vllm_knows_of_its_models_is_shared_by_all_sets_that_leave_them_as_they_are(
    patch: LoadedPatch, tmp_path: Path
) -> None:
    of_models = text("vllm.model_executor.models.qwen3", "a", "b")
    touching = write_patch(tmp_path / "patches", "of-models", of_models, "VALUE = 1\n")
    first, second = write(tmp_path, patch), write(tmp_path)
    assert first.digest != second.digest
    assert model_infos(first) == model_infos(second) == tmp_path / "cache" / "vllm" / "modelinfos-0.32.0"
    patched = write(tmp_path, patch, touching)
    assert model_infos(patched) == model_infos(write(tmp_path, touching)) != model_infos(first)
    assert model_infos(write(tmp_path, patch, vllm="0.26.0")) != model_infos(first)
    again = write_patch(tmp_path / "changed", "of-models", of_models, "VALUE = 2\n")
    assert model_infos(write(tmp_path, again)) != model_infos(patched)


def test_translated_headers_are_shared_by_all_sets(patch: LoadedPatch, tmp_path: Path) -> None:
    first, second = write(tmp_path, patch), write(tmp_path)
    assert first.cache_root != second.cache_root
    shared = tmp_path / "cache" / "vllm" / HEADERS
    assert {(one.cache_root / HEADERS).resolve(strict=True) for one in (first, second)} == {shared}


@pytest.mark.parametrize("module", ["vllm.models.qwen3", "vllm.models.registry"])
def test_sets_that_touch_new_style_models_have_model_infos_of_their_own(
    patch: LoadedPatch, tmp_path: Path, module: str
) -> None:
    touching = write_patch(tmp_path / "patches", "of-models", text(module, "a", "b"), "VALUE = 1\n")
    assert model_infos(write(tmp_path, patch, touching)) != model_infos(write(tmp_path, patch))


@pytest.mark.parametrize("point", ["general_plugins", "kernels"])
def test_sets_with_code_that_vllm_runs_first_have_model_infos_of_their_own(
    patch: LoadedPatch, tmp_path: Path, point: str
) -> None:
    running = write_patch(tmp_path / "patches", "runs-first", hook(point), "def replacement(): ...\n")
    assert model_infos(write(tmp_path, patch, running)) != model_infos(write(tmp_path, patch))


def test_a_folder_that_a_cache_has_of_its_own_stays(patch: LoadedPatch, tmp_path: Path) -> None:
    own = write(tmp_path, patch).cache_root / "modelinfos"
    own.unlink()
    own.mkdir()
    (own / "known.json").write_text("{}")
    write(tmp_path, patch)
    assert [path.name for path in own.iterdir()] == ["known.json"]


def test_a_full_disk_leaves_nothing_half(patch: LoadedPatch, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        with disk.full(), pytest.raises(HostError) as raised:
            write_bundle([patch], "0.32.0", disk.folder)
        left = [path for path in disk.folder.rglob("*") if path.is_file()]
        assert raised.value.reason is Reason.DISK_FULL
        assert left == []


def test_a_cache_that_cannot_be_written_says_so(patch: LoadedPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HostError) as raised:
        write_bundle([patch], "0.32.0", tmp_path / "file")
    assert raised.value.reason is Reason.NOT_WRITABLE


def aged(folder: Path, days: float) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    then = time.time() - days * 86_400
    os.utime(folder, (then, then))
    return folder


def bundles(cache: Path, days: Collection[float]) -> list[Path]:
    """One bundle with a compile cache of each age."""
    found = []
    for number, age in enumerate(days):
        folder = cache / "overlay" / f"digest{number}"
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text("{}")
        (cache / "vllm" / folder.name / "torch_compile_cache").mkdir(parents=True)
        found.append(aged(folder, age))
    return found


def test_old_bundles_go_with_their_caches_and_those_in_use_stay(tmp_path: Path) -> None:
    found = bundles(tmp_path, [0, 1, 20, 30, 40])
    (tmp_path / "vllm" / "a plain vllm's").mkdir()
    prune(tmp_path, [found[4].name], keep=3)
    assert [folder.exists() for folder in found] == [True, True, True, False, True]
    assert sorted(path.name for path in (tmp_path / "vllm").iterdir()) == [
        "a plain vllm's",
        "digest0",
        "digest1",
        "digest2",
        "digest4",
    ]


def test_a_bundle_of_this_week_stays_however_many_there_are(tmp_path: Path) -> None:
    found = bundles(tmp_path, [1, 2, 3, 8])
    prune(tmp_path, [], keep=0)
    assert [folder.exists() for folder in found] == [True, True, True, False]


def test_shadow_files_go_after_a_month_and_halves_after_a_day(tmp_path: Path) -> None:
    shadow = tmp_path / "overlay" / "shadow"
    new, old = aged(shadow / "new", 20), aged(shadow / "old", 31)
    half, writing = aged(tmp_path / "overlay" / ".d.x", 2), aged(tmp_path / "overlay" / ".d.y", 0.1)
    aged(shadow, 90)
    prune(tmp_path, [])
    assert [folder.exists() for folder in (new, old, half, writing)] == [True, False, False, True]


def test_translated_headers_go_a_month_after_they_were_last_read(tmp_path: Path) -> None:
    folder = tmp_path / "vllm" / HEADERS / "ab"
    folder.mkdir(parents=True)
    now = time.time()
    for name, read in (("cabc.h.gch", 31), ("cabd.h.gch", 2)):
        (folder / name).touch()
        os.utime(folder / name, (now - read * 86_400, now - 60 * 86_400))
    prune(tmp_path, [])
    assert [path.name for path in folder.iterdir()] == ["cabd.h.gch"]


def test_a_compiled_kernel_goes_a_month_after_any_file_of_it_was_read(tmp_path: Path) -> None:
    folder = tmp_path / "vllm" / KERNELS
    now = time.time()
    for kernel, read in (("OLD", 31), ("NEW", 2)):
        (folder / kernel).mkdir(parents=True)
        for name, days in (("decode.cubin", read), ("decode.json", 60)):
            (folder / kernel / name).touch()
            os.utime(folder / kernel / name, (now - days * 86_400, now - 60 * 86_400))
        os.utime(folder / kernel, (now, now - 60 * 86_400))
    prune(tmp_path, [])
    assert [path.name for path in folder.iterdir()] == ["NEW"]
    assert len(list((folder / "NEW").iterdir())) == 2


def test_there_is_nothing_to_remove_in_a_new_home(tmp_path: Path) -> None:
    prune(tmp_path / "none", [])
    assert not (tmp_path / "none").exists()


def test_the_copy_that_runs_in_the_engine_settles_the_same(patch: LoadedPatch, tmp_path: Path) -> None:
    bundle = write(tmp_path, patch)
    manifest = json.loads((bundle.folder / "manifest.json").read_text())
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm" / "scheduler.py").write_text("a")
    found = settle(manifest["patches"], str(tmp_path / "vllm"))
    assert found.texts == {"vllm.scheduler": "b"}
