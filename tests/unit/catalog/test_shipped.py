"""The catalogue that ships: every file is right, and everything in it fits together."""

import hashlib
from pathlib import Path

import pytest

from engine_host.catalog.resolve import TargetHardware, require, resolve
from engine_host.core.errors import HostError
from engine_host.core.package_data import presets, resources
from engine_host.core.settings import EngineSettings
from engine_host.engines.flag_spelling import ARGPARSE
from engine_host.engines.llamacpp import command as llamacpp
from engine_host.engines.vllm import command as vllm
from engine_host.fit.shapes.model import read_shape
from engine_host.launch.preflight.turboquant import KV_TYPES
from engine_host.protocol.catalog import EntryKind, PresetEngine, PresetStatus, Task, Workload
from tests.shipped_catalog import PLACE, shipped

CATALOG = shipped()
FILES = sorted(path for kind in EntryKind for path in PLACE.folder(kind).glob("*.yaml"))


def test_nothing_is_wrong_in_any_file() -> None:
    assert [(fault.file, fault.line, fault.key, fault.message) for fault in CATALOG.faults] == []
    read = (CATALOG.engines, CATALOG.hardware, CATALOG.models, CATALOG.profiles, CATALOG.presets)
    assert sum(map(len, read)) == len(FILES)


@pytest.mark.parametrize("path", FILES, ids=[path.relative_to(presets()).as_posix() for path in FILES])
def test_a_file_is_called_after_its_id(path: Path) -> None:
    assert f"id: {path.stem}" in path.read_text(encoding="utf-8").splitlines()


def test_the_gpus_that_people_have_are_there() -> None:
    assert set(CATALOG.hardware) == {
        "rtx-2080-ti",
        "rtx-3060-ti",
        "rtx-3070",
        "rtx-3070-ti",
        "rtx-3080-12gb",
        "rtx-3080-ti",
        "rtx-3090-ti",
        "rtx-4060",
        "rtx-4060-ti-8gb",
        "rtx-4070-super",
        "rtx-4070-ti",
        "rtx-4080-super",
        "rtx-5060",
        "rtx-5060-ti-8gb",
        "rtx-5070",
        "rtx-5070-ti",
        "tesla-p40",
        "rtx-3080-10gb",
        "rtx-4070",
        "rtx-4070-ti-super",
        "rtx-4080",
        "rtx-5060-ti-16gb",
        "rtx-3060-12gb",
        "rtx-3090",
        "rtx-4060-ti-16gb",
        "rtx-4090",
        "rtx-5080",
        "rtx-5090",
        "rtx-a4000",
        "rtx-a5000",
        "rtx-a6000",
        "rtx-pro-6000",
        "l4",
        "l40s",
        "a100-40gb",
        "a100-80gb",
        "h100",
        "h200",
    }
    measured = CATALOG.hardware["h200"].entry.bandwidth_measured_gb_s
    assert measured is not None
    assert measured.how == "measured"


def test_the_presets_cover_families_engines_tasks_and_workloads() -> None:
    entries = [one.entry for one in CATALOG.presets.values()]
    assert len(entries) >= 20
    used = [CATALOG.models[name].entry for name in {entry.model for entry in entries}]
    assert {model.family for model in used} >= {
        "sndr-demo",
        "qwen3.6",
        "gemma-4",
        "diffusiongemma",
        "llama-3",
        "qwen3",
        "gemma-3",
        "gpt-oss",
    }
    assert {task for model in used for task in model.tasks} >= {Task.EMBEDDING, Task.RERANK, Task.INFILL}
    assert {entry.engine for entry in entries} == set(PresetEngine)
    assert {entry.profile for entry in entries} == set(CATALOG.profiles)
    assert {workload for entry in entries for workload in entry.card.good_for} == set(Workload)
    assert any(
        e.settings.kv_cache_dtype == "turboquant_k8v4" and e.settings.speculation == "mtp" for e in entries
    )
    assert {model.id for model in used} == set(CATALOG.models), "a model without a preset"


@pytest.mark.parametrize("name", sorted(CATALOG.presets))
def test_a_preset_resolves_everywhere_without_conflict(name: str) -> None:
    preset = CATALOG.preset(name)
    resolved = require(resolve(CATALOG, name))
    assert {setting.name for setting in resolved.settings} >= {"context", "speculation"} - (
        {"context"} if preset.engine is PresetEngine.SGLANG else set()
    )
    for setting in resolved.settings:
        assert setting.by.file.startswith("presets/")
        line = (
            (presets().parent / setting.by.file)
            .read_text(encoding="utf-8")
            .splitlines()[(setting.by.line or 0) - 1]
        )
        assert line.strip().startswith(f"{setting.name}:")
    for hardware in CATALOG.hardware:
        for count in range(1, 9):
            found = resolve(CATALOG, name, TargetHardware(hardware, count))
            assert all(conflict.settings == ("tensor_parallel",) for conflict in found.conflicts)
    for good in preset.needs.known_good:
        found = resolve(CATALOG, name, TargetHardware(good, max(1, preset.needs.gpus)))
        assert not [finding for finding in found.findings if finding.severity == "error"]


@pytest.mark.parametrize("name", sorted(CATALOG.presets))
def test_a_card_says_what_it_stands_on(name: str) -> None:
    card = CATALOG.presets[name].entry.card
    assert card.caveats or card.status is PresetStatus.VERIFIED
    assert all(evidence.machine and evidence.pin and evidence.source for evidence in card.evidence)


@pytest.mark.parametrize("name", sorted(CATALOG.models))
def test_the_shape_of_a_model_can_be_computed_with(name: str) -> None:
    model = CATALOG.models[name].entry
    shape = read_shape(model.shape)
    assert shape.mtp_layers == (model.mtp_layers or 0)
    assert len(shape.layers) > 0


def test_the_bundled_models_files_are_the_ones_described() -> None:
    seen = 0
    for variant in CATALOG.models["sndr-demo"].entry.variants:
        assert variant.bundled is not None
        place = resources() / variant.bundled
        folder = place if variant.format == "safetensors" else place.parent
        for file in variant.files:
            path = folder / file.name
            if not path.exists():
                assert file.name == "model.safetensors", "only the checkpoint is made by the set-up"
                continue
            content = path.read_bytes()
            assert (len(content), hashlib.sha256(content).hexdigest()) == (file.size, file.sha256)
            seen += 1
    assert seen >= 5


@pytest.mark.parametrize("name", sorted(CATALOG.presets))
def test_arguments_are_not_those_that_the_program_gives(name: str) -> None:
    owned = {PresetEngine.VLLM: vllm.owned_flags(), PresetEngine.LLAMA_CPP: llamacpp.owned_flags()}
    resolved = resolve(CATALOG, name)
    ARGPARSE.refuse_owned(resolved.overrides.extra_arguments, owned.get(resolved.engine, {}))


def test_llamacpps_streams_are_the_programs_own() -> None:
    assert CATALOG.engines["llama.cpp"].entry.settings.streams == EngineSettings().streams


@pytest.mark.parametrize(
    "name", [name for name in CATALOG.ids() if CATALOG.preset(name).card.status is PresetStatus.VERIFIED]
)
def test_what_is_verified_was_measured_as_the_preset_starts(name: str) -> None:
    """No figure of a start with drafts stands for one without them."""
    resolved = resolve(CATALOG, name)
    drafts = any(one.name == "speculation" and one.value not in {None, "off"} for one in resolved.settings)
    for one in CATALOG.preset(name).card.evidence:
        said = f"{one.metric} {one.conditions}".lower()
        assert drafts or not any(word in said for word in ("mtp", "draft"))
        assert one.value is not None
        assert name in one.source


def test_another_card_is_no_way_out_for_one_that_is_not_here() -> None:
    with pytest.raises(HostError) as raised:
        CATALOG.gpu("rtx-9080-ti")
    fix = raised.value.problem.fix
    assert fix is not None
    assert fix.command == "sndr presets hardware"
    assert "Did you mean" not in fix.text
    assert "--gpu" in fix.text
    with pytest.raises(HostError) as raised:
        CATALOG.gpu("RTX 3080")
    assert raised.value.problem.fix is not None
    assert "Did you mean rtx-3080-10gb or rtx-3080-12gb?" in raised.value.problem.fix.text


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("RTX 3090", "rtx-3090"),
        ("rtx3090", "rtx-3090"),
        ("3090", "rtx-3090"),
        ("NVIDIA GeForce RTX 3090", "rtx-3090"),
        ("3090 ti", "rtx-3090-ti"),
        ("rtx-3060", "rtx-3060-12gb"),
        ("3060 Ti", "rtx-3060-ti"),
        ("4060 Ti 8GB", "rtx-4060-ti-8gb"),
        ("GeForce RTX 3080 12 GB", "rtx-3080-12gb"),
        ("RTX 4070 Ti SUPER", "rtx-4070-ti-super"),
        ("A6000", "rtx-a6000"),
        ("P40", "tesla-p40"),
        ("A100 80GB PCIe", "a100-80gb"),
    ],
)
def test_a_card_is_known_by_what_people_call_it(said: str, meant: str) -> None:
    assert CATALOG.gpu(said).entry.id == meant


def test_no_two_cards_are_called_the_same_but_for_their_memory() -> None:
    for one in CATALOG.hardware.values():
        assert CATALOG.gpu(one.entry.title.upper()).entry.id == one.entry.id


@pytest.mark.parametrize("preset", sorted(CATALOG.presets))
def test_no_preset_drafts_where_turboquant_answers_wrongly(preset: str) -> None:
    """What our kernels do not read runs on vLLM's own, which answer wrongly with drafts."""
    resolved = resolve(CATALOG, preset)
    values = {one.name: one.value for one in resolved.settings}
    kind = str(values.get("kv_cache_dtype"))
    if resolved.engine is PresetEngine.VLLM and kind.startswith(vllm.TURBOQUANT):
        drafts = vllm.speculation_method(str(values["speculation"])) is not None
        assert not drafts or kind in KV_TYPES
