"""The list of models: both forms side by side, found by id, name or path."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.core.package_data import resources
from engine_host.library.index import ModelIndex
from engine_host.library.scan import FoundModel, Place, find_models
from engine_host.protocol.errors import Reason
from engine_host.protocol.models import ModelFile, ModelOrigin
from tests.unit.asynchronous import run
from tests.unit.library.checkpoints import checkpoint, in_hub, tensors

DEMO = resources() / "models" / "sndr-demo"


def shelf_of(*folders: Path) -> ModelIndex:
    def scan() -> Sequence[FoundModel]:
        return find_models([Place(folder, ModelOrigin.FOLDER, "mine") for folder in folders])

    return ModelIndex(scan)


def found(model_index: ModelIndex, wanted: str, *formats: str) -> ModelFile:
    return run(model_index.find(wanted, formats)).file


@pytest.fixture
def both(tmp_path: Path) -> Path:
    """One model as a GGUF and as a checkpoint."""
    folder = checkpoint(tmp_path / "sndr-demo", tensors(a=(2,)))
    shutil.copyfile(DEMO / "sndr-demo-q8_0.gguf", folder / "sndr-demo-q8_0.gguf")
    return tmp_path


def test_a_model_in_two_forms_is_listed_twice_under_one_name(both: Path) -> None:
    models = run(shelf_of(both).models())
    assert [(model.id, model.name, model.format) for model in models] == [
        ("sndr-demo-q8-0", "sndr-demo", "GGUF"),
        ("sndr-demo-safetensors", "sndr-demo", "safetensors"),
    ]


def test_the_name_means_the_gguf_unless_the_engine_wants_the_other_form(both: Path) -> None:
    model_index = shelf_of(both)
    assert found(model_index, "sndr-demo").format == "GGUF"
    assert found(model_index, "sndr-demo", "safetensors", "shape").format == "safetensors"
    assert found(model_index, "sndr-demo-q8-0", "safetensors").format == "GGUF", "an id is what it is"
    assert found(model_index, "sndr-demo-safetensors").path == str(both / "sndr-demo")


def test_paths(both: Path, tmp_path: Path) -> None:
    model_index = shelf_of()
    folder = both / "sndr-demo"
    for path in (folder, folder / "config.json", folder / "model.safetensors"):
        assert found(model_index, str(path)).format == "safetensors"
    assert found(model_index, str(folder / "sndr-demo-q8_0.gguf")).format == "GGUF"
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copyfile(folder / "sndr-demo-q8_0.gguf", alone / "x.gguf")
    assert found(model_index, str(alone)).format == "GGUF"
    with pytest.raises(HostError) as raised:
        found(model_index, str(tmp_path / "nowhere"))
    assert raised.value.reason is Reason.MODEL_FILE_MISSING


def test_only_the_main_revision_of_the_hugging_face_cache_is_listed(tmp_path: Path) -> None:
    hub = tmp_path / "hub"
    in_hub(hub, "Org/My-Model", {"old": tensors(a=(2,)), "new": tensors(a=(4,))}, "new")
    in_hub(hub, "Org/Loose", {"abc": None}, None)
    model_index = shelf_of(hub)
    (model,) = run(model_index.models())
    assert (model.id, model.name, model.parameters) == ("org-my-model", "my-model", 4)
    assert model.path.endswith("snapshots/new")
    for wanted in ("Org/My-Model", "org-my-model", "my-model"):
        assert found(model_index, wanted).path == model.path


def test_a_broken_checkpoint_is_listed_with_its_problem(tmp_path: Path) -> None:
    checkpoint(tmp_path / "m", tensors(a=(8,))[:-3])
    model_index = shelf_of(tmp_path)
    (model,) = run(model_index.models())
    assert model.problem is not None
    assert model.problem.reason is Reason.MODEL_FILE_DAMAGED
    (tmp_path / "m" / "model.safetensors").write_bytes(tensors(a=(8,)))
    assert found(model_index, "m").parameters == 8, "a file that was mended is read again"


def test_what_only_looks_like_a_checkpoint_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "config.json").write_text('{"port": 80}')
    checkpoint(tmp_path / "pipeline" / "text_encoder", tensors(a=(2,)))
    (tmp_path / "pipeline" / "model_index.json").write_text("{}")
    checkpoint(tmp_path / "no-class", architectures=None)
    checkpoint(tmp_path / "shape")
    assert [model.id for model in run(shelf_of(tmp_path).models())] == ["shape"]


NAMES = [
    "~nobody-of-this-name/a.gguf",
    "/a\0b.gguf",
    "/" + "a" * 300 + ".gguf",
    "/" + "a/" * 3000 + "b.gguf",
    "\ud800.gguf",
    "x" * 100_000 + ".gguf",
    "/dev/zero",
    "/proc/self/mem",
]


@pytest.mark.parametrize("name", NAMES, ids=lambda name: repr(name[:30]))
def test_a_name_that_leads_nowhere_is_a_clear_error(name: str) -> None:
    with pytest.raises(HostError) as caught:
        run(ModelIndex(list).find(name))
    assert caught.value.reason is Reason.MODEL_FILE_MISSING
    assert len(str(caught.value)) < 5000


def test_a_file_whose_name_is_no_text_does_not_hide_the_others(tmp_path: Path) -> None:
    for name in (b"\xff.gguf", b"good.gguf"):
        (tmp_path / os.fsdecode(name)).write_bytes(b"GGUF")
    places = (Place(tmp_path, ModelOrigin.FOLDER, "here"),)
    found = run(ModelIndex(lambda: find_models(places)).models())
    assert len(found) == 2
    assert sum(file.problem is not None and "no text" in file.problem.message for file in found) == 1
    for file in found:
        assert ModelFile.model_validate_json(file.model_dump_json())


def test_a_model_that_no_scan_found_is_described_once_for_its_file(tmp_path: Path) -> None:
    shutil.copytree(DEMO, tmp_path / "mine")
    path = str(next((tmp_path / "mine").rglob("*.gguf")))
    index = shelf_of()
    found(index, path)
    known = index.known(path)
    assert known is not None
    assert index.known(path) is known
    os.utime(path, (1, 1))
    found(index, path)
    again = index.known(path)
    assert again is not None
    assert again.info is not known.info
