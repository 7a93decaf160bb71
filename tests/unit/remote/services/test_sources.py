"""Where the files of a model on another machine came from."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from engine_host.deploy.deployment import Deployment
from engine_host.deploy.spec import ModelSource
from engine_host.protocol.catalog import WeightFile
from engine_host.protocol.launch.deploy import RenderTarget
from engine_host.remote.services.answers import FoundFile, FoundModel
from engine_host.remote.services.sources import watched
from engine_host.remote.services.there.models import model
from engine_host.remote.transfer.sent import SentModel
from tests.unit.deploy.samples import deployed, wanted_of

COMMIT, A, B = "c" * 40, "a" * 64, "b" * 64
ELSEWHERE = ModelSource("none")


def found(path: str, **about: object) -> FoundFile:
    """A large file there, of which nothing is known but its size."""
    known = {"path": path, "place": path, "blob": Path(path).name, "size": 1 << 40, "sha256": None}
    return FoundFile.model_validate(known | about)


def sent(**files: str) -> SentModel:
    """A model that was sent."""
    return SentModel(destination="gpu", model="/m/x.gguf", to="/srv", files=files)


@pytest.fixture
def made() -> Deployment:
    """A start whose model is there."""
    found = deployed(wanted_of("qwen3.6-27b-q4-24"), RenderTarget.SYSTEMD)
    return replace(found, local=True, downloads=(), again=())


def test_a_file_of_a_hubs_cache_comes_from_its_commit(made: Deployment, tmp_path: Path) -> None:
    repository = tmp_path / "hub/models--me--my.model"
    snapshot = repository / "snapshots" / COMMIT
    (repository / "blobs").mkdir(parents=True)
    snapshot.mkdir(parents=True)
    (repository / "blobs" / A).write_bytes(b"xxx")
    (snapshot / "m q.gguf").symlink_to(repository / "blobs" / A)
    (tmp_path / "short").symlink_to(snapshot)
    path = str(tmp_path / "short" / "m q.gguf")
    said = FoundModel.model_validate(model({"path": path}))
    (one,) = watched(made, said.sources, ELSEWHERE, (), "gpu").again
    assert one.address == f"https://huggingface.co/me/my.model/resolve/{COMMIT}/m%20q.gguf"
    assert (one.file, one.size, one.sha256) == (path, 3, hashlib.sha256(b"xxx").hexdigest())


def test_a_folder_is_brought_again_file_by_file(made: Deployment, tmp_path: Path) -> None:
    snapshot = tmp_path / "models--me--m" / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    for name in ("config.json", "model.safetensors"):
        (snapshot / name).write_text(name, encoding="utf-8")
    said = FoundModel.model_validate(model({"path": str(snapshot)}))
    again = watched(made, said.sources, ELSEWHERE, (), "gpu").again
    assert [Path(one.file).name for one in again] == ["config.json", "model.safetensors"]


@pytest.mark.parametrize(
    ("about", "address"),
    [
        ({}, f"https://huggingface.co/org/m/resolve/{COMMIT}/sub/m.gguf"),
        ({"sha256": A}, f"https://huggingface.co/org/m/resolve/{COMMIT}/sub/m.gguf"),
        ({"sha256": B}, None),
        ({"size": 7}, None),
    ],
)
def test_a_file_that_is_the_presets_comes_from_where_that_has_it(
    made: Deployment, about: dict[str, object], address: str | None
) -> None:
    file = WeightFile(name="sub/m.gguf", size=1 << 40, sha256=A)
    preset = ModelSource("m", repository="org/m", revision=COMMIT, files=(file,))
    done = watched(made, (found("/srv/m.gguf", **about),), preset, (), "gpu")
    assert [one.address for one in done.again] == ([address] if address else [])
    assert ("service.no-source" in [one.id for one in done.findings]) == (address is None)


def test_what_was_sent_is_awaited_and_of_the_rest_it_is_said(made: Deployment) -> None:
    parts = (found("/srv/a.gguf"), found("/srv/b.gguf"))
    both = sent(**{"/srv/a.gguf": A, "/srv/b.gguf": B})
    done = watched(made, parts, ELSEWHERE, (both,), "gpu")
    assert (done.awaited, done.files) == (True, ("/srv/a.gguf", "/srv/b.gguf"))
    done = watched(made, parts, ELSEWHERE, (sent(**{"/srv/a.gguf": A}),), "gpu")
    (told,) = [one for one in done.findings if one.id == "service.no-source"]
    assert not done.awaited
    assert "/srv/b.gguf" in told.message
    assert "/srv/a.gguf" not in told.message


@pytest.mark.parametrize(
    "place",
    [f"/x/models--me--m/snapshots/{COMMIT}", "/x/models--me--m/snapshots/main/m.gguf", "/x/m--a/m.gguf"],
)
def test_a_path_that_is_no_commits_file_has_no_source_in_the_hub(made: Deployment, place: str) -> None:
    done = watched(made, (found("/srv/m.gguf", place=place, blob=A),), ELSEWHERE, (), "gpu")
    assert "service.no-source" in [one.id for one in done.findings]
