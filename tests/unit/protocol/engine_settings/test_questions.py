"""Settings as a question to fit, and back: by the rows of the table, and by nothing else."""

import pytest

from engine_host.protocol.engine_settings.questions import drafts_itself, question_of, settings_asked
from engine_host.protocol.engine_settings.row import LLAMA_CPP, VLLM
from engine_host.protocol.engine_settings.table import SETTINGS, Overrides
from engine_host.protocol.launch.fit import FitRequest

JSON = '{"method": "deepseek_mtp", "num_speculative_tokens": 5}'


def test_every_field_that_a_row_names_is_one_of_a_question() -> None:
    for name, row in SETTINGS.items():
        assert set(row.fit) <= set(FitRequest.model_fields), name
    named = {field for row in SETTINGS.values() for field in row.fit}
    # What a question asks beside settings: of which model, on what, and how it is answered.
    others = set(FitRequest.model_fields) - named
    assert others == {
        "model", "preset", "engine", "server", "hardware", "taken_gib", "gpus", "cpu", "spared_layers",
        "eight_bit_head", "grouped_attention",
        "bits", "min_p", "acceptance_length", "grid", "instead_of", "use_gpus",
    }  # fmt: skip


def test_settings_answer_the_fields_of_their_rows() -> None:
    asked = question_of(LLAMA_CPP, {"context": 4096, "kv_type_k": "q8_0", "kv_type_v": "q4_0", "threads": 3})
    assert asked == {"context": 4096, "kv": "q8_0", "kv_v": "q4_0"}
    asked = question_of(VLLM, {"kv_cache_dtype": "fp8", "eager": None, "extra_arguments": ["--a", "b"]})
    assert asked == {"kv": "fp8", "extra_arguments": ("--a", "b")}
    assert question_of(VLLM, {"speculation": "off", "embeddings": True}) == {
        "speculation": False,
        "embeddings": True,
    }


@pytest.mark.parametrize(
    ("said", "drafts"),
    [
        ("mtp", True),
        ("draft-mtp", True),
        ("off", False),
        ("ngram", False),
        (JSON, True),
        ('{"method": "draft_model", "model": "org/some-mtp-model"}', False),
        ("{no json", False),
    ],
)
def test_who_drafts_with_layers_of_its_own(said: str, drafts: bool) -> None:
    assert drafts_itself(said) is drafts
    assert question_of(VLLM, {"speculation": said})["speculation"] is drafts


def test_drafts_are_as_many_as_the_json_says() -> None:
    assert question_of(VLLM, {"speculation": JSON, "draft_tokens": 3})["draft_tokens"] == 5
    many = '{"method": "ngram", "num_speculative_tokens": 1000}'
    assert question_of(VLLM, {"speculation": many})["draft_tokens"] == 64, "a question takes no more"


def test_a_question_sets_what_the_engine_calls_it() -> None:
    assert settings_asked(VLLM, {"kv": "fp8", "streams": 2, "grid": True}) == {
        "kv_cache_dtype": "fp8",
        "streams": 2,
    }
    assert settings_asked(LLAMA_CPP, {"kv": "q8_0"}) == {"kv_type_k": "q8_0", "kv_type_v": "q8_0"}
    both = settings_asked(LLAMA_CPP, {"kv": "q8_0", "kv_v": "q4_0", "speculation": True})
    assert both == {"kv_type_k": "q8_0", "kv_type_v": "q4_0", "speculation": "draft-mtp"}
    assert settings_asked(VLLM, {"speculation": False, "eager": None}) == {"speculation": "off"}
    Overrides.model_validate(both)


def test_scores_take_the_memory_of_vectors() -> None:
    assert question_of(VLLM, {"reranking": True, "embeddings": False})["embeddings"] is True
