"""The form of a preset: what the schema says becomes fields, and what is typed becomes values."""

import asyncio

import pytest

from engine_host.core.event_log import EventLog
from engine_host.core.package_data import presets
from engine_host.core.settings import SettingsFile
from engine_host.operations.presets.catalog import PresetOperations
from engine_host.protocol.presets import CatalogPage, PresetForm, PresetPage
from sndr_gui.models.presets.form import (
    FormField,
    fields_of,
    fits_engine,
    is_variation,
    shown,
    text_only,
    typed,
    value_at,
    with_choices,
)

VARIATION = {"format": 1, "id": "mine", "title": "Mine", "extends": "demo-llamacpp"}
WHOLE = {"format": 1, "id": "mine", "model": "sndr-demo"}


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> tuple[PresetForm, CatalogPage, PresetPage]:
    """Return the real catalogue."""
    folder = tmp_path_factory.mktemp("config")
    services = PresetOperations(
        presets, folder / "own", SettingsFile(folder / "s.toml"), EventLog(), lambda: ()
    )

    async def read() -> tuple[PresetForm, CatalogPage, PresetPage]:
        return await services.form(), await services.entries(), await services.page()

    return asyncio.run(read())


Said = tuple[PresetForm, CatalogPage, PresetPage]


def fields(said: Said, data: dict[str, object] | None = None) -> dict[str, FormField]:
    return {field.key: field for field in fields_of(said[0], VARIATION if data is None else data)}


def test_a_variation_and_a_whole_preset_have_their_own_fields(said: Said) -> None:
    assert is_variation(VARIATION)
    assert not is_variation(WHOLE)
    variation, whole = fields(said), fields(said, dict(WHOLE))
    assert {"id", "title", "extends", "variant", "profile", "notes", "patches.off"} <= set(variation)
    assert {"model", "engine", "needs.gpus", "card.status", "card.good_for"} <= set(whole)
    assert "format" not in variation
    assert text_only(said[0], VARIATION) == ()
    assert text_only(said[0], WHOLE) == ("limits", "card.do_not_use", "card.evidence")


def test_types_ranges_choices_and_helps_are_the_schemas(said: Said) -> None:
    found = fields(said)
    context, share = found["settings.context"], found["settings.gpu_memory"]
    assert (context.kind, context.low, context.help) == ("whole", 128, "tokens for one stream")
    assert (share.kind, share.high) == ("decimal", 1)
    assert 0 < share.low < 0.001
    assert found["settings.flash_attention"].choices == ("auto", "on", "off")
    assert found["settings.eager"].kind == "flag"
    assert found["settings.extra_arguments"].kind == "words"
    assert found["notes"].kind == "lines"
    assert found["title"].required
    assert not found["variant"].required
    assert fields(said, dict(WHOLE))["card.status"].closed


def test_settings_of_other_engines_are_told_apart(said: Said) -> None:
    found = fields(said)
    assert fits_engine(found["settings.threads"], "llama.cpp")
    assert not fits_engine(found["settings.threads"], "vllm")
    assert not fits_engine(found["settings.eager"], "llama.cpp")
    assert fits_engine(found["settings.eager"], "sglang")
    assert fits_engine(found["patches.on"], "vllm")
    assert not fits_engine(found["patches.on"], "llama.cpp")
    assert not fits_engine(found["patches.off"], "sglang")
    assert all(fits_engine(field, None) for field in found.values())


def test_the_catalogue_offers_its_ids(said: Said) -> None:
    form, catalog, page = said
    offered = with_choices(fields_of(form, VARIATION), catalog, page.presets, "qwen3.6-27b", "vllm")
    found = {field.key: field for field in offered}
    assert "demo-llamacpp" in found["extends"].choices
    assert "throughput" in found["profile"].choices
    assert "int4-autoround" in found["variant"].choices
    assert "turboquant_k8v4" in found["settings.kv_cache_dtype"].choices
    assert found["title"].choices == ()


def test_values_are_shown_and_read_back(said: Said) -> None:
    found = fields(said)
    for key, content, value in (
        ("settings.context", "8192", 8192),
        ("settings.gpu_memory", "0,85", 0.85),
        ("settings.gpu_memory", "1", 1),
        ("settings.eager", "no", False),
        ("settings.extra_arguments", "--a, --b=1", ["--a", "--b=1"]),
        ("notes", "One, two.\n\nThree.", ["One, two.", "Three."]),
        ("title", "  Mine ", "Mine"),
        ("title", "   ", None),
    ):
        assert typed(found[key], content) == value
    assert [shown(value) for value in (None, True, 0.85, 8192, ["a", "b"])] == [
        "",
        "yes",
        "0.85",
        "8192",
        "a, b",
    ]
    assert value_at({"a": {"b": 1}}, ("a", "b")) == 1
    assert value_at({"a": 1}, ("a", "b")) is None
    assert value_at(None, ("a",)) is None
