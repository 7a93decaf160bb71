"""Files of a machine are matched with the catalogue's weights: by place, name, size and hash."""

from pathlib import Path
from typing import Any

import pytest

from engine_host.library.of_catalog import file_at, from_repository, match, wrong_files
from engine_host.protocol.catalog import Variant, WeightFile
from engine_host.protocol.models import ModelFile, ModelOrigin

SHIPPED = Path("/program")
HASH = "ab" * 32


def model(path: str, size: int = 100, form: str = "GGUF", quantization: str = "Q4_K_M") -> ModelFile:
    return ModelFile(
        id=Path(path).stem.lower(),
        name=Path(path).stem,
        path=path,
        origin=ModelOrigin.FOLDER,
        found_in="",
        size=size,
        format=form,
        quantization=quantization,
    )


def gguf(**fields: Any) -> Variant:
    known = {"id": "q4", "format": "gguf", "quantization": "Q4_K_M", "repository": "org/M-GGUF"}
    return Variant.model_validate(known | fields)


def folder(**fields: Any) -> Variant:
    known = {"id": "bf16", "format": "safetensors", "quantization": "bf16", "repository": "org/M"}
    return Variant.model_validate(known | fields)


def files(size: int | None = 100) -> tuple[WeightFile, ...]:
    return (WeightFile(name="M-Q4_K_M.gguf", size=size, sha256=HASH),)


def paths(variant: Variant, *models: ModelFile) -> list[str]:
    return [one.path for one in match(variant, models, SHIPPED).found]


def test_what_ships_with_the_program_is_known_by_its_place() -> None:
    variant = gguf(repository=None, bundled="models/demo/demo.gguf")
    there, other = model("/program/models/demo/demo.gguf"), model("/elsewhere/demo.gguf")
    assert paths(variant, other, there) == [there.path]
    assert paths(variant, other) == []


@pytest.mark.parametrize(
    "path",
    [
        "/models/M-Q4_K_M.gguf",
        "/models/m-q4_k_m.gguf",
        "/hub/models--org--M-GGUF/snapshots/abc/M-Q4_K_M.gguf",
        f"/ollama/blobs/sha256-{HASH}",
    ],
)
def test_a_file_is_known_by_its_name_or_its_hash(path: str) -> None:
    assert paths(gguf(files=files()), model(path)) == [path]


def test_a_file_of_another_size_is_another_one() -> None:
    found = match(gguf(files=files()), [model("/a/M-Q4_K_M.gguf", size=99)], SHIPPED)
    assert not found.found
    assert [one.path for one in found.others] == ["/a/M-Q4_K_M.gguf"]


def test_without_a_size_the_name_is_enough_and_two_that_differ_are_ambiguous() -> None:
    variant = gguf(files=files(size=None))
    assert paths(variant, model("/a/M-Q4_K_M.gguf"), model("/b/other.gguf")) == ["/a/M-Q4_K_M.gguf"]
    same = match(variant, [model("/a/M-Q4_K_M.gguf"), model("/b/M-Q4_K_M.gguf")], SHIPPED)
    assert not same.ambiguous, "two copies of one file"
    two = match(variant, [model("/a/M-Q4_K_M.gguf"), model("/b/M-Q4_K_M.gguf", size=7)], SHIPPED)
    assert two.ambiguous
    surer = [model("/a/M-Q4_K_M.gguf"), model("/x/org/M-GGUF/M-Q4_K_M.gguf", size=7)]
    found = match(variant, surer, SHIPPED)
    assert [one.path for one in found.found] == ["/x/org/M-GGUF/M-Q4_K_M.gguf"]
    assert not found.ambiguous, "of one the repository is known"


def test_a_repository_without_file_names_is_matched_by_quantisation() -> None:
    here = [
        model("/x/org/M-GGUF/a.gguf", quantization="Q8_0"),
        model("/x/org/M-GGUF/b.gguf", quantization="Q4_K_M"),
        model("/x/else/M-GGUF/c.gguf", quantization="Q4_K_M"),
    ]
    assert paths(gguf(), *here) == ["/x/org/M-GGUF/b.gguf"]


@pytest.mark.parametrize(
    ("path", "known"),
    [
        ("/hub/models--org--M/snapshots/abc", True),
        ("/models/org/M", True),
        ("/models/M", True),
        ("/models/m", True),
        ("/hub/models--other--M/snapshots/abc", False),
        ("/models/N", False),
    ],
)
def test_a_checkpoint_is_known_by_its_repository_or_its_folder(path: str, known: bool) -> None:
    assert bool(paths(folder(), model(path, form="safetensors"))) is known


def test_a_config_without_weights_is_none() -> None:
    assert paths(folder(), model("/models/org/M", form="shape")) == []
    assert paths(folder(), model("/models/org/M", form="GGUF")) == []


def test_files_are_compared_by_size_at_once(tmp_path: Path) -> None:
    variant = folder(
        files=(
            WeightFile(name="model.safetensors", size=3),
            WeightFile(name="config.json", size=2, role="config"),
            WeightFile(name="tokenizer.json", role="tokenizer"),
            WeightFile(name="absent.json", role="config"),
        )
    )
    for name, text in (("model.safetensors", "123"), ("config.json", "1"), ("tokenizer.json", "12345")):
        (tmp_path / name).write_text(text)
    here = model(str(tmp_path), form="safetensors")
    assert [(file.name, size) for file, size in wrong_files(variant, here)] == [
        ("config.json", 1),
        ("absent.json", None),
    ]


def test_a_gguf_file_may_have_another_name(tmp_path: Path) -> None:
    path = tmp_path / f"sha256-{HASH}"
    path.write_bytes(b"x" * 100)
    variant = gguf(files=files())
    assert wrong_files(variant, model(str(path))) == ()
    assert file_at(variant, variant.files[0], model(str(path))) == path


def test_a_folder_tells_its_repository() -> None:
    assert from_repository("org/M", "/hub/models--org--M/snapshots/abc")
    assert from_repository("org/M", "/models/org/m")
    assert not from_repository("org/M", "/models/M")
