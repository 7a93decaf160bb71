"""Resolution: the strongest layer wins, every value says who set it, and contradictions are conflicts."""

import itertools

import pytest

from engine_host.catalog.resolve import TargetHardware, UserValues, require, resolve
from engine_host.core.errors import HostError
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.errors import Reason
from engine_host.protocol.launch.plans import Layer
from engine_host.protocol.presets import ResolvedPreset, ResolvedSetting
from tests.unit.catalog.small import ENGINE, HARDWARE, MODEL, PRESET, PROFILE, VARIATION, Small


def setting(found: ResolvedPreset, name: str) -> ResolvedSetting:
    return next(one for one in found.settings if one.name == name)


def test_each_value_names_its_layer_file_key_and_line(small: Small) -> None:
    found = resolve(small.read(), "small-one")
    streams = setting(found, "streams")
    assert streams.value == 2
    assert streams.by.layer is Layer.PROFILE
    assert (streams.by.file, streams.by.key) == ("shipped/profiles/latency.yaml", "settings.any.streams")
    assert streams.by.line == 8
    assert [(by.layer, by.value, by.key) for by in streams.over] == [
        (Layer.MODEL, 6, "settings.vllm.streams"),
        (Layer.MODEL, 4, "settings.any.streams"),
        (Layer.ENGINE, 16, "settings.streams"),
    ]
    assert setting(found, "tool_parser").by.layer is Layer.MODEL
    assert setting(found, "gpu_memory").by.layer is Layer.ENGINE


# One setting said by each layer in turn; the value is the layer's place.
LAYERS = ("engine", "hardware", "model", "profile", "preset", "file", "variation", "override")


@pytest.mark.parametrize("layers", [c for n in (1, 2, 8) for c in itertools.combinations(LAYERS, n)])
def test_the_order_of_the_layers(small: Small, layers: tuple[str, ...]) -> None:
    def value(layer: str) -> int:
        return 1024 + LAYERS.index(layer)

    def context(layer: str, indent: str, otherwise: str) -> str:
        return f"{indent}context: {value(layer)}" if layer in layers else f"{indent}{otherwise}"

    small.write("engines/vllm", ENGINE.replace("  context: 8192", context("engine", "  ", "eager: false")))
    small.write(
        "hardware/card",
        HARDWARE.replace(
            "    extra_arguments: [--from-hardware]", context("hardware", "    ", "eager: false")
        ),
    )
    small.write("models/small", MODEL.replace("    streams: 6", context("model", "    ", "eager: false")))
    small.write(
        "profiles/latency", PROFILE.replace("    streams: 2", context("profile", "    ", "eager: false"))
    )
    small.write(
        "presets/small-one", PRESET.replace("  context: 16384", context("preset", "  ", "eager: false"))
    )
    small.write_own("mine", VARIATION.replace("  context: 4096", context("variation", "  ", "eager: false")))
    user = UserValues(
        "settings.toml",
        {"context": value("file")} if "file" in layers else {},
        {"context": "engine.context"},
    )
    overrides = Overrides(context=value("override")) if "override" in layers else None
    found = resolve(small.read(), "mine", TargetHardware("card"), user, overrides)
    strongest = max(layers, key=LAYERS.index)
    context_of = setting(found, "context")
    assert context_of.value == value(strongest)
    assert len(context_of.over) == len(layers) - 1
    layer = {"file": Layer.USER, "variation": Layer.USER, "engine": Layer.ENGINE}.get(strongest)
    assert context_of.by.layer is (layer or Layer(strongest))
    if strongest == "file":
        assert (context_of.by.file, context_of.by.key) == ("settings.toml", "engine.context")


def test_null_takes_back_what_weaker_layers_said(small: Small) -> None:
    small.write("presets/small-one", PRESET.replace("  context: 16384", "  streams: ~"))
    found = resolve(small.read(), "small-one")
    assert setting(found, "streams").value is None
    assert found.overrides.streams is None


def test_arguments_of_layers_are_joined(small: Small) -> None:
    found = resolve(
        small.read(), "small-one", TargetHardware("card"), None, Overrides(extra_arguments=("--mine",))
    )
    assert setting(found, "extra_arguments").value == ["--from-hardware", "--from-preset", "--mine"]
    assert found.overrides.extra_arguments == ("--from-hardware", "--from-preset", "--mine")


def test_variables_of_layers_are_joined_and_the_later_of_a_name_holds(small: Small) -> None:
    table = "  context: 16384\n  variables:\n    A: 1\n    B: preset"
    small.write("presets/small-one", PRESET.replace("  context: 16384", table))
    found = resolve(small.read(), "small-one", None, None, Overrides(variables=("A=2", "C=x")))
    assert setting(found, "variables").value == ["A=2", "B=preset", "C=x"]
    assert found.overrides.variables == ("A=2", "B=preset", "C=x")


def test_overrides_leave_the_engines_own_defaults_to_it(small: Small) -> None:
    found = resolve(small.read(), "small-one")
    assert found.overrides.gpu_memory is None
    assert (found.overrides.context, found.overrides.streams) == (16384, 2)


def test_settings_of_another_engine_do_not_count(small: Small) -> None:
    small.write(
        "engines/llama.cpp", ENGINE.replace("id: vllm", "id: llama.cpp").replace("  gpu_memory: 0.9\n", "")
    )
    small.write(
        "presets/small-one",
        PRESET.replace("engine: vllm", "engine: llama.cpp").replace("variant: bf16", "variant: q4"),
    )
    found = resolve(small.read(), "small-one")
    assert setting(found, "gpu_layers").by.key == "variants.1.settings.llama.cpp.gpu_layers"
    assert "tool_parser" not in {one.name for one in found.settings}


def conflict(
    small: Small, *, machine: TargetHardware | None = None, overrides: Overrides | None = None
) -> str:
    found = resolve(small.read(), "small-one", machine, None, overrides)
    assert len(found.conflicts) == 1
    with pytest.raises(HostError) as caught:
        require(found)
    problem = caught.value.problem
    assert problem.reason is (Reason.SETTING_INVALID if overrides else Reason.PRESET_CONFLICT)
    assert problem.cause
    assert problem.fix is not None
    assert problem.evidence["conflicts"][0]["by"]["layer"]
    return problem.message


def test_the_way_out_of_a_conflict_can_be_pasted(small: Small) -> None:
    small.write(
        "presets/small-one",
        PRESET.replace("gpus: 1", "gpus: 2").replace("  context: 16384", "  tensor_parallel: 2"),
    )
    few = resolve(small.read(), "small-one", TargetHardware("card", 1), None, Overrides(eager=True))
    with pytest.raises(HostError) as caught:
        require(few)
    fix = caught.value.problem.fix
    assert fix is not None
    assert fix.text == "It is for 2 GPUs: ask for so many with --count 2."
    assert fix.command == "sndr presets resolve small-one --hardware card --count 2 --set eager=true"
    with pytest.raises(HostError) as caught:
        require(resolve(small.read(), "small-one", None, None, Overrides(context=999999)))
    fix = caught.value.problem.fix
    assert fix is not None
    assert fix.command == "sndr presets resolve small-one --set context=999999"
    assert fix.text == "Give another context, or leave it out."


def test_more_context_than_the_model_was_trained_for(small: Small) -> None:
    conflict_message = conflict(small, overrides=Overrides(context=40000))
    assert "context is 40000 by the layer override" in conflict_message
    assert "at most 32768" in conflict_message
    assert "model (shipped/models/small.yaml, line 9)" in conflict_message


def test_a_value_that_the_engine_does_not_know(small: Small) -> None:
    small.write("presets/small-one", PRESET.replace("  context: 16384", "  kv_cache_dtype: q4_0"))
    conflict_message = conflict(small)
    assert (
        "kv_cache_dtype is q4_0 by the layer preset (shipped/presets/small-one.yaml, line 14)"
        in conflict_message
    )
    assert "only auto, fp8 is possible by the layer engine default" in conflict_message


def test_drafting_without_a_head_for_it(small: Small) -> None:
    small.write("presets/small-one", PRESET.replace("  context: 16384", "  speculation: mtp"))
    assert "mtp is not possible by the layer model" in conflict(small)
    own_head = MODEL.replace(
        "    repository: somebody/small\n", "    repository: somebody/small\n    mtp: true\n"
    )
    small.write("models/small", own_head)
    assert not resolve(small.read(), "small-one").conflicts


def test_heads_that_cannot_be_shared_and_gpus_that_are_not_there(small: Small) -> None:
    preset = PRESET.replace("  context: 16384", "  tensor_parallel: 8").replace("gpus: 1", "gpus: 8")
    small.write("presets/small-one", preset)
    assert "12 attention heads, which 8 GPUs cannot share" in conflict(
        small, machine=TargetHardware("card", 8)
    )
    small.write("presets/small-one", preset.replace("_parallel: 8", "_parallel: 4"))
    conflict_message = conflict(small, machine=TargetHardware("card", 2))
    assert "tensor_parallel is 4" in conflict_message
    assert "at most 2" in conflict_message
    assert "hardware (shipped/hardware/card.yaml)" in conflict_message


def test_two_ways_to_say_the_same_memory(small: Small) -> None:
    small.write("profiles/latency", PROFILE.replace("    batched_tokens: 2048", "    gpu_memory: 0.8"))
    small.write("presets/small-one", PRESET.replace("  context: 16384", "  kv_cache_gib: 4"))
    conflict_message = conflict(small)
    assert "profile (shipped/profiles/latency.yaml, line 10)" in conflict_message
    assert "preset (shipped/presets/small-one.yaml, line 14)" in conflict_message
    small.write("presets/small-one", PRESET.replace("  context: 16384", "  kv_cache_gib: 4\n  gpu_memory: ~"))
    assert not resolve(small.read(), "small-one").conflicts


def test_an_engines_default_gives_way_to_the_other_way_of_saying_it(small: Small) -> None:
    small.write("presets/small-one", PRESET.replace("  context: 16384", "  kv_cache_gib: 4"))
    assert not resolve(small.read(), "small-one").conflicts


def test_limits_of_files_hold_for_the_engine_they_name(small: Small) -> None:
    limit = "limits:\n  - {setting: streams, engine: ENGINE, at_least: 3, because: it is so}\n"
    small.write("profiles/latency", PROFILE + limit.replace("ENGINE", "llama.cpp"))
    assert not resolve(small.read(), "small-one").conflicts
    small.write("profiles/latency", PROFILE + limit.replace("ENGINE", "vllm"))
    assert "at least 3 is needed by the layer profile" in conflict(small)


def test_hardware_that_lacks_something_is_found_and_still_resolved(small: Small) -> None:
    needs = "  gpus: 2\n  vram_gib: 48\n  sm: '8.9'\n  formats: [fp8]\n  nvlink: true"
    text = PRESET.replace("  gpus: 1\n  vram_gib: 24\n  sm: '8.0'", needs)
    small.write("presets/small-one", text)
    found = resolve(small.read(), "small-one", TargetHardware("card", 1))
    errors = {finding.id for finding in found.findings if finding.severity == "error"}
    assert errors == {"preset.gpus", "preset.vram", "preset.sm", "preset.formats", "preset.nvlink"}
    assert setting(found, "context").value == 16384
    small.write("presets/small-one", PRESET.replace("vram_gib: 24", "vram_gib: 24.4"))
    assert not resolve(small.read(), "small-one", TargetHardware("card", 1)).findings


def test_a_general_setting_that_beats_the_preset_is_told(small: Small) -> None:
    user = UserValues("settings.toml", {"context": 2048}, {"context": "engine.context"})
    found = resolve(small.read(), "small-one", None, user)
    assert [finding.id for finding in found.findings] == ["preset.overruled"]
    assert "settings.toml" in found.findings[0].message


def test_a_variation_does_not_inherit_measurements(small: Small) -> None:
    evidence = "  evidence:\n    - {metric: speed, value: 9, machine: m, pin: p, by: others, source: s}\n"
    small.write("presets/small-one", PRESET + evidence)
    small.write_own("mine", VARIATION)
    small.write_own("same", "format: 1\nid: same\ntitle: Same\nextends: small-one\n")
    catalog = small.read()
    mine, same = catalog.preset("mine"), catalog.preset("same")
    assert mine.card.evidence == ()
    assert "differs from small-one in context" in mine.card.caveats[0]
    assert mine.card.fallback == "small-one"
    assert same.card == catalog.preset("small-one").card
    assert (same.id, same.title) == ("same", "Same")


def test_what_is_not_there_is_named_with_what_is(small: Small) -> None:
    catalog = small.read()
    with pytest.raises(HostError, match="There is no preset smal-one") as caught:
        resolve(catalog, "smal-one")
    assert caught.value.problem.fix is not None
    assert "small-one" in caught.value.problem.fix.text
    with pytest.raises(HostError, match="There is no hardware cart"):
        resolve(catalog, "small-one", TargetHardware("cart"))
