"""The choice of patches for a start: gates, switches, requirements, conflicts; each with its reason."""

from dataclasses import replace
from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.overlay.selection import Selection, StartProperties, Switches, select, switch_states
from engine_host.protocol.errors import Reason
from engine_host.protocol.patches import PatchChoice, PatchReason
from tests.unit.overlay.patch_folders import RANGE, load, write_patch

HERE = StartProperties(
    vllm="0.32.0+cpu",
    platform="cuda",
    sm=("9.0", "9.0"),
    kv_cache_dtype="turboquant_k8v4",
    architectures=("Qwen3_5ForConditionalGeneration",),
    speculation="mtp",
)


def chosen(
    place: Path,
    choice: PatchChoice | None = None,
    *,
    switches: Switches | None = None,
    properties: StartProperties = HERE,
) -> Selection:
    return select(load(place), properties, switches or Switches(), choice or PatchChoice())


def ids(selection: Selection) -> list[str]:
    return [patch.id for patch in selection.chosen]


def reasons(selection: Selection) -> dict[str, PatchReason]:
    return {decision.patch: decision.reason for decision in selection.left_out}


@pytest.mark.parametrize(
    ("where", "reason", "detail"),
    [
        ('vllm = ">=0.33"', PatchReason.OUT_OF_RANGE, "vLLM 0.32.0 is not >=0.33"),
        (f'{RANGE}\nplatforms = ["rocm", "cpu"]', PatchReason.WRONG_PLATFORM, "cuda, not rocm or cpu"),
        (f'{RANGE}\nsm = ">=10"', PatchReason.WRONG_GPU, "SM 9.0, 9.0 is not >=10"),
        (f'{RANGE}\nkv_cache_dtypes = ["fp8*"]', PatchReason.WRONG_KV_CACHE, "turboquant_k8v4, not fp8*"),
        (
            f'{RANGE}\narchitectures = ["Llama*", "Gemma*"]',
            PatchReason.WRONG_ARCHITECTURE,
            "Qwen3_5ForConditionalGeneration, not Llama* or Gemma*",
        ),
        (f'{RANGE}\nspeculation = ["eagle*"]', PatchReason.WRONG_SPECULATION, "mtp, not eagle*"),
    ],
)
def test_a_gate_leaves_a_patch_out_and_says_what_is_and_what_would_fit(
    tmp_path: Path, where: str, reason: PatchReason, detail: str
) -> None:
    write_patch(tmp_path, "gated", where=where)
    write_patch(tmp_path, "plain")
    selection = chosen(tmp_path)
    assert ids(selection) == ["plain"]
    (decision,) = selection.left_out
    assert (decision.patch, decision.reason, decision.detail) == ("gated", reason, detail)


@pytest.mark.parametrize(
    "where",
    [
        'vllm = "==0.32.0"',  # a local part such as +cpu is not another version
        f'{RANGE}\nplatforms = ["cpu", "cuda"]',
        f'{RANGE}\nsm = ">=9.0,<10"',
        f'{RANGE}\nkv_cache_dtypes = ["turboquant_*"]',
        f'{RANGE}\narchitectures = ["Llama*", "Qwen3_5*"]',
        f'{RANGE}\nspeculation = ["eagle*", "mtp"]',
        f'{RANGE}\nspeculation = ["any"]',
    ],
)
def test_a_gate_that_fits_lets_a_patch_in(tmp_path: Path, where: str) -> None:
    write_patch(tmp_path, "gated", where=where)
    assert ids(chosen(tmp_path)) == ["gated"]


def test_a_release_candidate_counts_as_its_release(tmp_path: Path) -> None:
    write_patch(tmp_path, "gated", where='vllm = ">=0.32.0,<0.33"')
    assert ids(chosen(tmp_path, properties=StartProperties("0.32.0rc1", "cpu"))) == ["gated"]
    assert ids(chosen(tmp_path, properties=StartProperties("0.33.0rc1", "cpu"))) == []


@pytest.mark.parametrize("wanted", ["any", "mtp"])
def test_without_speculation_a_patch_for_it_is_out(tmp_path: Path, wanted: str) -> None:
    write_patch(tmp_path, "gated", where=f'{RANGE}\nspeculation = ["{wanted}"]')
    selection = chosen(tmp_path, properties=StartProperties("0.32.0", "cuda"))
    assert reasons(selection) == {"gated": PatchReason.WRONG_SPECULATION}
    assert selection.left_out[0].detail == "speculation is off"


def test_one_gpu_that_does_not_fit_is_enough(tmp_path: Path) -> None:
    write_patch(tmp_path, "gated", where=f'{RANGE}\nsm = ">=9.0"')
    mixed = chosen(tmp_path, properties=StartProperties("0.32.0", "cuda", sm=("9.0", "8.6")))
    assert mixed.left_out[0].detail == "SM 8.6 is not >=9.0"
    none = chosen(tmp_path, properties=StartProperties("0.32.0", "cpu"))
    assert reasons(none) == {"gated": PatchReason.WRONG_GPU}
    assert "no GPU" in none.left_out[0].detail


def test_the_most_particular_switch_wins(tmp_path: Path) -> None:
    write_patch(tmp_path, "tiles", family="attention.turboquant")
    catalogue = load(tmp_path)

    def switch_state(off: tuple[str, ...] = (), on: tuple[str, ...] = ()) -> tuple[bool, str]:
        return switch_states(catalogue, Switches(off=off, on=on))["tiles"]

    assert switch_state() == (True, "default")
    assert switch_state(off=("all",)) == (False, "all")
    assert switch_state(off=("all",), on=("attention",)) == (True, "attention")
    assert switch_state(on=("attention",), off=("attention.turboquant",)) == (False, "attention.turboquant")
    assert switch_state(off=("attention.turboquant", "attention", "all"), on=("tiles",)) == (True, "tiles")
    assert switch_state(off=("tiles",), on=("all", "attention", "attention.turboquant")) == (False, "tiles")


def test_a_switch_of_the_settings_is_named_as_the_reason(tmp_path: Path) -> None:
    write_patch(tmp_path, "one")
    write_patch(tmp_path, "other", "default = false")
    selection = chosen(tmp_path, switches=Switches(off=("test",)))
    assert reasons(selection) == {"one": PatchReason.SWITCHED_OFF, "other": PatchReason.SWITCHED_OFF}
    assert selection.left_out[0].detail == "settings: test is off"


def test_a_switch_for_a_patch_that_is_gone_is_passed_over(tmp_path: Path) -> None:
    write_patch(tmp_path, "one")
    assert ids(chosen(tmp_path, switches=Switches(off=("retired",), on=("another-one",)))) == ["one"]


def test_a_patch_that_is_off_by_default_waits_to_be_named(tmp_path: Path) -> None:
    write_patch(tmp_path, "shy", "default = false")
    assert reasons(chosen(tmp_path)) == {"shy": PatchReason.NOT_DEFAULT}
    assert ids(chosen(tmp_path, PatchChoice(on=("shy",)))) == ["shy"]
    assert ids(chosen(tmp_path, PatchChoice(on=("test",)))) == ["shy"]
    assert ids(chosen(tmp_path, switches=Switches(on=("shy",)))) == ["shy"]


def test_a_start_goes_over_the_settings(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_patch(tmp_path, name)
    off = Switches(off=("one",))
    assert ids(chosen(tmp_path, PatchChoice(on=("one",)), switches=off)) == ["one", "two"]
    without = chosen(tmp_path, PatchChoice(off=("two",)), switches=off)
    assert reasons(without) == {"one": PatchReason.SWITCHED_OFF, "two": PatchReason.LEFT_OUT}
    both = chosen(tmp_path, PatchChoice(on=("one",), off=("all",)))
    assert ids(both) == []


def test_only_brings_what_is_needed_and_what_is_required(tmp_path: Path) -> None:
    write_patch(tmp_path, "below", "default = false")
    write_patch(tmp_path, "wanted", 'requires = ["below"]')
    write_patch(tmp_path, "guard", 'required = true\nrequires = ["under-guard"]')
    write_patch(tmp_path, "under-guard")
    write_patch(tmp_path, "other")
    selection = chosen(tmp_path, PatchChoice(only=("wanted",)), switches=Switches(off=("wanted",)))
    assert set(ids(selection)) == {"below", "wanted", "guard", "under-guard"}
    assert reasons(selection) == {"other": PatchReason.LEFT_OUT}
    assert set(ids(chosen(tmp_path, PatchChoice(only=())))) == {"guard", "under-guard"}


def test_only_does_not_open_a_gate(tmp_path: Path) -> None:
    write_patch(tmp_path, "gated", where='vllm = ">=0.33"')
    selection = chosen(tmp_path, PatchChoice(only=("gated",)))
    assert reasons(selection) == {"gated": PatchReason.OUT_OF_RANGE}


def test_what_requires_a_patch_that_is_out_is_out_too(tmp_path: Path) -> None:
    write_patch(tmp_path, "c-base", where='vllm = ">=0.33"')
    write_patch(tmp_path, "b-middle", 'requires = ["c-base"]')
    write_patch(tmp_path, "a-top", 'requires = ["b-middle"]')
    selection = chosen(tmp_path)
    assert reasons(selection) == {
        "c-base": PatchReason.OUT_OF_RANGE,
        "b-middle": PatchReason.REQUIREMENT_SKIPPED,
        "a-top": PatchReason.REQUIREMENT_SKIPPED,
    }
    assert selection.left_out[1].detail == "it requires c-base, which is out: out_of_range"


@pytest.mark.parametrize("says", ["one", "two"])
def test_a_conflict_names_both_whoever_declared_it(tmp_path: Path, says: str) -> None:
    for name in ("one", "two"):
        other = {"one": "two", "two": "one"}[name]
        write_patch(tmp_path, name, f'conflicts = ["{other}"]' if name == says else "")
    with pytest.raises(HostError) as raised:
        chosen(tmp_path)
    assert raised.value.reason is Reason.PATCH_CONFLICT
    assert "one" in raised.value.problem.message
    assert "two" in raised.value.problem.message
    assert set(raised.value.problem.evidence["patches"]) == {"one", "two"}
    # With one of them out there is nothing to refuse.
    assert ids(chosen(tmp_path, PatchChoice(off=("one",)))) == ["two"]


@pytest.mark.parametrize("choice", [{"off": ("onee",)}, {"on": ("onee",)}, {"only": ("onee",)}])
def test_a_name_that_means_nothing_is_refused_with_what_is_near(
    tmp_path: Path, choice: dict[str, tuple[str, ...]]
) -> None:
    write_patch(tmp_path, "one")
    with pytest.raises(HostError) as raised:
        chosen(tmp_path, PatchChoice(**choice))
    assert raised.value.reason is Reason.PATCH_UNKNOWN
    fix = raised.value.problem.fix
    assert fix is not None
    assert (fix.text, fix.command) == ("Did you mean one?", "sndr patches list")


def test_a_required_patch_that_is_switched_off_refuses_the_start(tmp_path: Path) -> None:
    write_patch(tmp_path, "guard", "required = true")
    with pytest.raises(HostError) as raised:
        chosen(tmp_path, switches=Switches(off=("all",)))
    assert raised.value.reason is Reason.PATCH_REQUIRED_FAILED
    assert raised.value.problem.fix is not None
    assert raised.value.problem.fix.command == "sndr patches switch on guard"


def test_a_required_patch_that_this_start_leaves_out_says_so(tmp_path: Path) -> None:
    write_patch(tmp_path, "guard", "required = true")
    with pytest.raises(HostError) as raised:
        chosen(tmp_path, PatchChoice(off=("guard",)))
    assert raised.value.problem.cause == "this start is without it"
    # The settings have nothing against it: switching it on there would change nothing.
    assert raised.value.problem.fix is not None
    assert raised.value.problem.fix.command is None


def test_a_required_patch_whose_requirement_is_out_refuses_the_start(tmp_path: Path) -> None:
    write_patch(tmp_path, "base")
    write_patch(tmp_path, "guard", 'required = true\nrequires = ["base"]')
    with pytest.raises(HostError) as raised:
        chosen(tmp_path, switches=Switches(off=("base",)))
    assert raised.value.reason is Reason.PATCH_REQUIRED_FAILED
    assert raised.value.problem.fix is not None
    assert raised.value.problem.fix.command == "sndr patches show guard"


def test_a_required_patch_that_has_no_place_here_is_no_refusal(tmp_path: Path) -> None:
    write_patch(tmp_path, "guard", "required = true", where='vllm = ">=0.33"')
    assert reasons(chosen(tmp_path)) == {"guard": PatchReason.OUT_OF_RANGE}


def test_a_patch_may_be_on_by_default_on_some_gpus_alone(tmp_path: Path) -> None:
    write_patch(tmp_path, "measured", 'default_sm = ">=9.0,<10"')
    assert ids(chosen(tmp_path)) == ["measured"]
    ampere = replace(HERE, sm=("9.0", "8.6"))
    left = chosen(tmp_path, properties=ampere)
    assert reasons(left) == {"measured": PatchReason.NOT_DEFAULT}
    assert left.left_out[0].detail == "it is on by default on SM >=9.0,<10 alone, and this is SM 9.0, 8.6"
    assert ids(chosen(tmp_path, PatchChoice(on=("measured",)), properties=ampere)) == ["measured"]
    assert ids(chosen(tmp_path, switches=Switches(on=("all",)), properties=ampere)) == ["measured"]


def test_a_patch_may_be_required_by_starts_with_speculation_alone(tmp_path: Path) -> None:
    write_patch(tmp_path, "right", "required_with_speculation = true")
    write_patch(tmp_path, "other")
    assert chosen(tmp_path).required == ("right",)
    assert chosen(tmp_path, properties=replace(HERE, speculation=None)).required == ()
    # Whoever leaves it out is told by the checks before the start, which know what is right instead.
    assert ids(chosen(tmp_path, PatchChoice(off=("right",)))) == ["other"]
