"""The form of Launch: only what the engine knows becomes part of the request."""

import pytest

from engine_host.protocol.engine_settings.table import Overrides, foreign_to
from engine_host.protocol.launch.plans import EngineKind, ServerChoice
from engine_host.protocol.models import ModelFile, ModelOrigin
from engine_host.protocol.patches import PatchChoice
from sndr_gui.models.launch.form import Form, words_of
from sndr_gui.models.launch.subject import Subject, engine_of, of_model


def model(kind: str) -> ModelFile:
    return ModelFile(
        id="m", name="m", path="/m", origin=ModelOrigin.FOLDER, found_in="/", size=1, format=kind
    )


def subject(kind: str) -> Subject:
    return of_model(model(kind))


FULL = Form(
    values={
        "context": 4096,
        "kv_type_k": "q8_0",
        "kv_cache_dtype": "fp8",
        "gpu_memory": 0.5,
        "kv_cache_gib": 2.0,
        "speculation": "ngram",
        "draft_tokens": 4,
        "eager": False,
        "threads": 3,
    },
    server=ServerChoice.PREBUILT,
    installation="0.32.0-cpu",
    without=("a",),
    added=("b",),
)


@pytest.mark.parametrize(
    ("kind", "engine"),
    [("GGUF", EngineKind.LLAMA_CPP), ("safetensors", EngineKind.VLLM), ("shape", EngineKind.VLLM)],
)
def test_the_format_names_the_engine(kind: str, engine: EngineKind) -> None:
    assert engine_of(model(kind)) is engine


def test_llama_cpp_gets_nothing_of_vllm() -> None:
    request = FULL.request(subject("GGUF"), "")
    given = request.overrides.model_dump(exclude_none=True, exclude_defaults=True)
    assert given == {
        "context": 4096,
        "kv_type_k": "q8_0",
        "speculation": "ngram",
        "draft_tokens": 4,
        "threads": 3,
    }
    assert (request.server, request.installation) == (ServerChoice.PREBUILT, None)
    assert request.patches == PatchChoice()


@pytest.mark.parametrize(("build", "memory"), [("cpu", {"kv_cache_gib": 2.0}), ("cuda", {"gpu_memory": 0.5})])
def test_vllm_gets_nothing_of_llama_cpp_nor_of_its_other_build(build: str, memory: dict[str, float]) -> None:
    request = FULL.request(subject("safetensors"), build)
    given = request.overrides.model_dump(exclude_none=True, exclude_defaults=True)
    usual = {
        "context": 4096,
        "kv_cache_dtype": "fp8",
        "speculation": "ngram",
        "draft_tokens": 4,
        "eager": False,
    }
    assert given == usual | memory
    assert (request.server, request.installation) == (ServerChoice.AUTO, "0.32.0-cpu")
    assert request.patches == PatchChoice(off=("a",), on=("b",))


def test_draft_tokens_mean_nothing_while_nothing_drafts() -> None:
    form = Form(values={"speculation": "off", "draft_tokens": 4})
    assert form.request(subject("shape"), "cpu").overrides.draft_tokens is None


@pytest.mark.parametrize("engine", [EngineKind.LLAMA_CPP, EngineKind.VLLM])
def test_every_field_is_a_setting_of_a_start(engine: EngineKind) -> None:
    names = [entry.name for build in ("cpu", "cuda") for entry in Form().fields(engine, build)]
    assert set(names) | {"draft_tokens"} == set(Overrides.model_fields) - set(foreign_to(engine))


def test_further_arguments_are_split_as_a_shell_does() -> None:
    assert words_of("--seed 7 --name 'a b'") == (("--seed", "7", "--name", "a b"), "")
    assert words_of("'open")[1].startswith("not a list of arguments")
