"""Each client finds the context length and what a model can do in the words that it reads."""

from typing import Any

import pytest

from engine_host.gateway.directory import Target
from engine_host.gateway.error_answers import EndpointError
from engine_host.gateway.listing import anthropic as anthropic_form
from engine_host.gateway.listing import codex, lm_studio, ollama, props
from engine_host.gateway.openai import listing

SEEING = Target(
    "e1", "eyes", 4, 32_768, 1_700_000_000.5, socket="/run/e1.sock", parameters=7_600_000_000, size=5 << 30,
    context_trained=131_072, architecture="qwen3", quantization="Q4_K_M", tools=True, images=True,
    fill_in_the_middle=True,
)  # fmt: skip
BARE = Target("e2", "bare", 1, 2048, 1_700_000_100, url="http://10.0.0.1:8000", native_infill=False)
EMBEDS = Target("e3", "embeds", 1, 512, 1_700_000_200, socket="/run/e3.sock", embeddings=True)
ALL = (SEEING, BARE, EMBEDS)


def test_openais_list_is_read_by_its_sdk_with_what_editors_look_for() -> None:
    import openai  # A second that only the worker pays that runs this test; Anthropic's takes three.

    entry = listing.model_entry(SEEING)
    assert openai.types.Model.model_validate(entry).id == "eyes"
    assert entry["capabilities"] == ["completion", "chat", "tool_use", "vision", "fill_in_the_middle"]
    assert entry["architecture"]["input_modalities"] == ["text", "image"]
    assert "tools" in entry["supported_parameters"]
    assert "tools" not in listing.model_entry(BARE)["supported_parameters"]
    assert listing.model_entry(EMBEDS)["architecture"]["output_modalities"] == ["embeddings"]


def test_codex_gets_every_field_of_each_model_that_can_talk() -> None:
    models = codex.model_list(ALL)["models"]
    assert [model["slug"] for model in models] == ["eyes", "bare"]
    first, second = models
    assert set(first) == set(second)
    assert (first["context_window"], first["input_modalities"]) == (32_768, ["text", "image"])
    assert first["truncation_policy"] == {"mode": "tokens", "limit": 8192}
    assert first["supports_parallel_tool_calls"] is True
    assert second["truncation_policy"]["limit"] == 512, "one tool's output does not fill a small context"


def test_anthropics_list_is_read_by_its_sdk() -> None:
    import anthropic

    page = anthropic_form.model_list(ALL, {})
    read = [anthropic.types.ModelInfo.model_validate(entry) for entry in page["data"]]
    assert (read[0].type, read[0].created_at.year) == ("model", 2023)
    assert [entry["id"] for entry in page["data"]] == ["eyes", "bare", "embeds"]
    assert page["data"][0]["created_at"] == "2023-11-14T22:13:20Z"
    assert page["data"][0]["max_input_tokens"] == 32_768
    assert "capabilities" not in page["data"][0]
    assert (page["has_more"], page["first_id"], page["last_id"]) == (False, "eyes", "embeds")


def test_anthropics_pages_follow_one_another() -> None:
    first = anthropic_form.model_list(ALL, {"limit": "2"})
    assert ([one["id"] for one in first["data"]], first["has_more"]) == (["eyes", "bare"], True)
    rest = anthropic_form.model_list(ALL, {"limit": "2", "after_id": "bare"})
    assert ([one["id"] for one in rest["data"]], rest["has_more"]) == (["embeds"], False)
    back = anthropic_form.model_list(ALL, {"limit": "1", "before_id": "embeds"})
    assert ([one["id"] for one in back["data"]], back["has_more"]) == (["bare"], True)
    assert anthropic_form.model_list((), {}) == {
        "data": [], "has_more": False, "first_id": None, "last_id": None
    }  # fmt: skip


@pytest.mark.parametrize("limit", ["0", "-1", "1001", "ten", "", "9" * 5000, "1e3", "²", " 1"])
def test_a_limit_that_is_none_is_refused(limit: str) -> None:
    with pytest.raises(EndpointError) as refused:
        anthropic_form.model_list(ALL, {"limit": limit})
    assert (refused.value.status, refused.value.param) == (400, "limit")


def test_lm_studios_lists_have_its_fixed_words() -> None:
    entries = lm_studio.model_list(ALL)["data"]
    assert [entry["type"] for entry in entries] == ["vlm", "llm", "embeddings"]
    assert {entry["state"] for entry in entries} == {"loaded"}
    assert [entry["compatibility_type"] for entry in entries] == ["gguf", "safetensors", "gguf"]
    assert (entries[0]["max_context_length"], entries[0]["loaded_context_length"]) == (131_072, 32_768)
    assert entries[0]["capabilities"] == ["tool_use", "vision"]
    newer = lm_studio.model_list_v1(ALL)["models"]
    assert newer[0]["loaded_instances"][0]["config"]["context_length"] == 32_768
    assert (newer[0]["params_string"], newer[1]["params_string"]) == ("7.6B", None)
    assert newer[1]["size_bytes"] is None, "not known is not 0"


def test_ollamas_answers() -> None:
    tags, running = ollama.tags(ALL)["models"], ollama.running(ALL)["models"]
    assert [one["name"] for one in tags] == [one["model"] for one in running] == ["eyes", "bare", "embeds"]
    assert len({one["digest"] for one in tags}) == 3
    assert all(len(one["digest"]) == 64 for one in tags)
    assert running[0]["context_length"] == 32_768
    shown = ollama.show(SEEING)
    assert shown["model_info"]["qwen3.context_length"] == 32_768
    assert shown["capabilities"] == ["completion", "tools", "insert", "vision"]
    assert ollama.show(EMBEDS)["capabilities"] == ["embedding"]
    assert ollama.named(ALL, "bare:latest") is BARE
    with pytest.raises(EndpointError):
        ollama.named(ALL, "bare:7b")


def test_props_tell_zed_all_that_it_asks_for_and_no_path() -> None:
    one = props.props((SEEING,), None)
    assert one["default_generation_settings"]["n_ctx"] == 32_768
    assert one["modalities"]["vision"] is True
    assert one["chat_template_caps"]["supports_tool_calls"] is True
    assert "/run" not in str(one)
    several = props.props(ALL, None)
    assert several["role"] == "router", "none of several is picked silently"
    assert props.props(ALL, "bare")["total_slots"] == 1
    with pytest.raises(EndpointError) as refused:
        props.props(ALL, "other")
    assert refused.value.status == 404


@pytest.mark.parametrize("form", [
    listing.model_list, codex.model_list, lm_studio.model_list, lm_studio.model_list_v1, ollama.tags,
    ollama.running,
])  # fmt: skip
def test_no_list_tells_where_an_engine_listens(form: Any) -> None:
    text = str(form(ALL))
    assert "/run/" not in text
    assert "10.0.0.1" not in text
