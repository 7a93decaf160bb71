"""Finding model files: in folders, and in the caches of other programs."""

import json
import os
from pathlib import Path

import pytest

from engine_host.library.scan import Place, find_models, other_programs
from engine_host.protocol.models import ModelOrigin


def put(path: Path, content: bytes = b"GGUF") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def names(folder: Path) -> list[str]:
    return [found.name for found in find_models([Place(folder, ModelOrigin.FOLDER, "mine")])]


def test_models_are_found_in_order_and_others_are_passed_over(tmp_path: Path) -> None:
    for name in (
        "b.gguf",
        "a/deep/A.GGUF",
        "big-00001-of-00002.gguf",
        "big-00002-of-00002.gguf",
        "mmproj-model-f16.gguf",
        "model-mmproj.gguf",
        "x.imatrix.gguf",
        "ggml-vocab-bert.gguf",
        "notes.txt",
        ".hidden/h.gguf",
        "node_modules/n.gguf",
    ):
        put(tmp_path / name)
    assert names(tmp_path) == ["b", "big", "A"]


def test_links(tmp_path: Path) -> None:
    outside = put(tmp_path / "outside" / "o.gguf")
    inside = put(tmp_path / "in" / "sub" / "i.gguf")
    (tmp_path / "in" / "loop").symlink_to(tmp_path / "in")
    (tmp_path / "in" / "away").symlink_to(outside.parent)
    (tmp_path / "in" / "linked.gguf").symlink_to(outside)
    (tmp_path / "in" / "twice.gguf").symlink_to(inside)
    (tmp_path / "in" / "broken.gguf").symlink_to(tmp_path / "nothing")
    # A link to a file is the user's own choice; the same file is listed once.
    assert names(tmp_path / "in") == ["linked", "twice"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_is_passed_over(tmp_path: Path) -> None:
    put(tmp_path / "a.gguf")
    put(tmp_path / "closed" / "b.gguf")
    (tmp_path / "closed").chmod(0)
    assert names(tmp_path) == ["a"]


def test_a_pipe_is_no_model(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    assert names(tmp_path) == []


def test_it_stops_when_asked(tmp_path: Path) -> None:
    put(tmp_path / "a.gguf")
    place = Place(tmp_path, ModelOrigin.FOLDER, "mine")
    assert find_models([place], stop=lambda: True) == ()
    assert find_models([Place(tmp_path / "none", ModelOrigin.FOLDER, "gone")]) == ()


def test_other_programs(tmp_path: Path) -> None:
    hub = tmp_path / ".cache/huggingface/hub/models--org--m"
    blob = put(hub / "blobs/abc")
    snapshot = hub / "snapshots/rev/m-Q4_K_M.gguf"
    snapshot.parent.mkdir(parents=True)
    snapshot.symlink_to(blob)
    put(tmp_path / ".lmstudio/models/org/m/lm.gguf")
    ollama = tmp_path / ".ollama/models"
    digest = "a" * 64
    put(ollama / f"blobs/sha256-{digest}", b"GGUF ollama")
    layers = [
        {"mediaType": "application/vnd.ollama.image.license", "digest": "sha256:" + "b" * 64},
        {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{digest}"},
    ]
    put(ollama / "manifests/registry.ollama.ai/library/llama3/8b", json.dumps({"layers": layers}).encode())
    put(ollama / "manifests/registry.ollama.ai/library/broken/1", b"{")
    escape = [{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:../../../etc/passwd"}]
    put(ollama / "manifests/registry.ollama.ai/library/evil/1", json.dumps({"layers": escape}).encode())
    places = other_programs({}, tmp_path)
    found = {(model.found_in, model.name) for model in find_models(places) if tmp_path in model.path.parents}
    assert found == {
        ("Hugging Face", "m-Q4_K_M"),
        ("LM Studio", "lm"),
        ("Ollama", "llama3:8b"),
    }
    assert all(place.origin is ModelOrigin.OTHER_PROGRAM for place in places)
