"""Models that are on the machine of a service: sizes, parts, and where links lead there."""

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from engine_host.deploy.build import deployment_of
from engine_host.deploy.deployment import Mount
from engine_host.deploy.spec import ModelSource
from engine_host.remote.services.answers import FoundModel
from engine_host.remote.services.there.models import model
from tests.unit.deploy.samples import wanted_of


def test_all_parts_of_a_split_model_are_told(tmp_path: Path) -> None:
    names = [f"m-0000{number}-of-00003.gguf" for number in (1, 2, 3)]
    for name in names[:2]:
        (tmp_path / name).write_bytes(b"x" * 10)
    paths = [str(tmp_path / name) for name in names]
    said = model({"path": paths[0]})
    assert said["files"] == paths, "the missing one is asked for, too"
    assert said["size"] is None
    (tmp_path / names[2]).write_bytes(b"x" * 10)
    assert model({"path": paths[0]})["size"] == 30
    assert [one["name"] for one in said["mounts"]] == names


def test_links_are_followed_there(tmp_path: Path) -> None:
    blobs, snapshot = tmp_path / "hub/blobs", tmp_path / "hub/snapshots/a"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    (blobs / "b").write_bytes(b"xxx")
    (snapshot / "m.gguf").symlink_to(blobs / "b")
    said = FoundModel.model_validate(model({"path": str(snapshot)}))
    assert [one.source for one in said.mounts] == [str(tmp_path / "hub")]
    assert (said.inside, said.size) == ("hub/snapshots/a", 3)
    said = FoundModel.model_validate(model({"path": str(snapshot / "m.gguf")}))
    assert (said.mounts[0].source, said.mounts[0].name) == (str(blobs / "b"), "m.gguf")


def test_what_is_not_there_is_of_unknown_size() -> None:
    said = FoundModel.model_validate(model({"path": "/nonexistent/m.gguf"}))
    assert (said.size, said.files) == (None, ("/nonexistent/m.gguf",))


@pytest.mark.parametrize("mount", [{"source": "a", "name": "b"}, {"source": "/a", "name": "../b"}])
def test_a_hostile_answer_is_no_mount(mount: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        FoundModel.model_validate({"files": [], "mounts": [mount], "inside": "", "size": 1})


def test_no_link_of_this_machine_is_followed_and_time_is_by_the_size(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    link = tmp_path / "models"
    link.symlink_to("here")
    path = link / "m.gguf"
    mounts = (Mount(path, "m.gguf"), Mount(link / "m2.gguf", "m2.gguf"))
    source = ModelSource("m", path=path, mounts=mounts, inside="m.gguf")
    spec = replace(wanted_of("demo-llamacpp"), model=source, native=False)
    made = deployment_of(spec)
    assert made.mounts == mounts
    assert made.start_seconds == 3600, "of unknown size"
    known = deployment_of(replace(spec, model=replace(source, size=600_000_000_000)))
    assert known.start_seconds == 2600
