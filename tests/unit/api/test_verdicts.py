"""Verdicts on all presets over the control API, and fit for the start of a preset."""

import re
from collections import Counter
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

import pytest

from engine_host.core.package_data import presets
from engine_host.fit import estimate
from engine_host.fit import parts as vllm_parts
from engine_host.operations.presets import catalog
from engine_host.protocol.errors import ErrorAnswer, Reason
from engine_host.protocol.launch.fit import FitReport, FitRequest, Verdict
from engine_host.protocol.presets import CatalogPage, JudgePresets, PresetPage, PresetVerdict, PresetVerdicts
from tests.unit.api.door import Door, door
from tests.unit.asynchronous import run

pytestmark = pytest.mark.usefixtures("home")
HARDWARE = sorted(path.stem for path in (presets() / "hardware").glob("*.yaml"))
PRESETS = {path.stem for path in (presets() / "presets").glob("*.yaml")}


def through(work: Callable[[Door], Awaitable[None]]) -> None:
    async def test() -> None:
        async with door() as opened:
            await work(opened)

    run(test())


async def judge(opened: Door, **asked: Any) -> PresetVerdicts:
    answer = await opened.client.post("/v1/presets/verdicts", json=JudgePresets(**asked).model_dump())
    assert answer.status_code == 200, answer.text
    return PresetVerdicts.model_validate_json(answer.text)


async def fit(opened: Door, **body: Any) -> FitReport:
    answer = await opened.client.post("/v1/fit", json=body)
    assert answer.status_code == 200, answer.text
    return FitReport.model_validate_json(answer.text)


def of(page: PresetVerdicts, preset: str) -> PresetVerdict:
    return next(one for one in page.verdicts if one.preset == preset)


def test_a_verdict_costs_a_few_estimates(monkeypatch: pytest.MonkeyPatch) -> None:
    """All presets on all GPUs are judged in seconds: each is resolved once, its context found by halves."""
    counted: Counter[str] = Counter()

    def count(module: ModuleType, name: str) -> None:
        original = getattr(module, name)

        def counting(*arguments: Any, **named: Any) -> Any:
            counted[name] += 1
            return original(*arguments, **named)

        monkeypatch.setattr(module, name, counting)

    count(catalog, "resolve")
    count(estimate, "_compared")
    count(vllm_parts, "fixed_parts")

    async def work(opened: Door) -> None:
        await judge(opened, hardware="rtx-3090")
        assert counted["resolve"] == len(PRESETS)
        assert len(PRESETS) < counted["_compared"] < 12 * len(PRESETS)
        assert counted["fixed_parts"] < 3 * len(PRESETS), "they are the same at any context"

    through(work)


def test_what_works_best_comes_first_and_what_cannot_run_says_why() -> None:
    async def work(opened: Door) -> None:
        page = await judge(opened, hardware="rtx-3090", count=2)
        assert page.hardware == "2 × GeForce RTX 3090"
        order = [list(Verdict).index(one.verdict) for one in page.verdicts]
        assert order == sorted(order)
        assert page.verdicts[0].preset.startswith("qwen3.6-27b")
        many = of(page, "qwen3.6-35b-a3b-sglang-4xl4")
        assert (many.verdict, many.reason) == (Verdict.CANNOT_RUN, Reason.ENGINE_UNUSABLE)
        assert many.why == "It needs 4 GPUs of 24 GiB; there are 2."
        new = of(page, "qwen3.6-27b-nvfp4-2x32")
        assert (new.verdict, new.reason) == (Verdict.CANNOT_RUN, Reason.UNSUPPORTED)
        assert "compute capability 9.0" in new.why
        assert {finding.id for finding in new.missing} >= {"preset.sm", "preset.formats"}
        assert of(page, "demo-llamacpp").decode is None, "the bandwidth of main memory is not known"

    through(work)


_CARD = re.compile(r"(\d+) x (.+)")
_TOGETHER = re.compile(r"(\w+) streams together")
_NUMBERS = {"eight": 8, "three": 3}
_SAID = re.compile(r"([\d.]+) tok/s")


def test_no_ceiling_is_below_what_a_card_reports() -> None:
    async def work(opened: Door) -> None:
        kinds = (await catalogue(opened)).hardware
        listed = PresetPage.model_validate_json((await opened.client.get("/v1/presets")).text).presets
        compared = 0
        for item in listed:
            for one in item.preset.card.evidence:
                here = _CARD.match(one.machine)
                if one.unit != "tok/s" or here is None or "prefill" in one.metric:
                    continue
                kind = next((entry for entry in kinds if entry.title.endswith(here[2])), None)
                if kind is None or not item.startable:
                    continue
                page = await judge(opened, hardware=kind.id, count=int(here[1]))
                verdict = of(page, item.preset.id)
                together = _TOGETHER.search(one.metric)
                if together is not None:
                    hardware = f"{here[1]}x {kind.id}"
                    streams = _NUMBERS[together[1]]
                    found = (
                        await fit(opened, preset=item.preset.id, hardware=hardware, streams=streams)
                    ).roofline
                    assert found is not None
                    assert found.streams == streams
                    ceiling = found.decode_all_streams
                else:
                    ceiling = verdict.decode
                told = [one.value or 0.0, *(float(text) for text in _SAID.findall(one.conditions))]
                if ceiling is not None:
                    assert max(told) <= ceiling, (item.preset.id, one.machine)
                    assert (verdict.decode_at_depth or 0) <= (verdict.decode or 0)
                    compared += 1
        assert compared >= 15

    through(work)


def test_one_card_is_one_and_two_are_two() -> None:
    async def work(opened: Door) -> None:
        one, two = await judge(opened, hardware="rtx-3090"), await judge(opened, hardware="rtx-3090", count=2)
        assert (one.hardware, two.hardware) == ("1 × GeForce RTX 3090", "2 × GeForce RTX 3090")
        alone = of(one, "qwen3.6-27b-int4-2x24")
        assert (alone.verdict, alone.why) == (Verdict.CANNOT_RUN, "It needs 2 GPUs of 24 GiB; there is one.")
        assert of(two, "qwen3.6-27b-int4-2x24").verdict is Verdict.FITS
        assert one.verdicts[0].verdict is Verdict.FITS

    through(work)


def test_drafting_never_lowers_what_is_possible_at_most() -> None:
    async def work(opened: Door) -> None:
        asked = {"preset": "qwen3.6-27b-fp8-2x24", "hardware": "2x rtx-3090"}
        drafting, plain = await fit(opened, **asked), await fit(opened, **asked, speculation=False)
        assert drafting.roofline is not None
        assert plain.roofline is not None
        assert (drafting.roofline.decode or 0) > (plain.roofline.decode or 0) > 0

    through(work)


async def catalogue(opened: Door) -> CatalogPage:
    return CatalogPage.model_validate_json((await opened.client.get("/v1/catalog")).text)


# TurboQuant with windows waits for vLLM, and SGLang is not started.
_ELSEWHERE = {"gemma-4-31b-k8v4-2x24", "qwen3.6-35b-a3b-sglang-4xl4"}


_COUNTS = (1, 2, 4, 8)


@pytest.mark.parametrize("count", _COUNTS)
def test_every_preset_has_a_verdict_on_every_gpu_and_what_a_card_says_is_needed_is_enough(count: int) -> None:
    """On the smallest cards with that much memory, as many as it says, no preset is called impossible."""

    async def work(opened: Door) -> None:
        catalog = await catalogue(opened)
        page = PresetPage.model_validate_json((await opened.client.get("/v1/presets")).text)
        presets = [item.preset for item in page.presets if item.preset.id not in _ELSEWHERE]
        assert {gpu.id for gpu in catalog.hardware} == set(HARDWARE)
        assert {max(preset.needs.gpus, 1) for preset in presets} <= set(_COUNTS)
        judged = {}
        for hardware in HARDWARE:
            verdicts = (await judge(opened, hardware=hardware, count=count)).verdicts
            assert {one.preset for one in verdicts} == PRESETS
            for one in verdicts:
                assert one.why or one.verdict is Verdict.FITS
                assert one.reason is not None or one.verdict not in {"cannot_run", "does_not_fit"}
                judged[one.preset, hardware] = one
        for preset in presets:
            if max(preset.needs.gpus, 1) != count:
                continue
            size = (preset.needs.vram_gib or 0) * 1024 * 0.97
            enough = [gpu for gpu in catalog.hardware if gpu.vram_mib.value >= size]
            least = min(gpu.vram_mib.value for gpu in enough) * 1.1
            smallest = [judged[preset.id, gpu.id] for gpu in enough if gpu.vram_mib.value <= least]
            may = {Verdict.FITS, Verdict.TIGHT} if preset.needs.gpus else {Verdict.UNKNOWN}
            assert any(one.verdict in may for one in smallest), smallest
            for hardware in preset.needs.known_good:
                assert not judged[preset.id, hardware].why.startswith("It is reported to run"), preset.id

    through(work)


def test_an_engine_that_is_not_started_is_a_reason() -> None:
    async def work(opened: Door) -> None:
        found = of(await judge(opened, hardware="l4", count=4), "qwen3.6-35b-a3b-sglang-4xl4")
        assert (found.verdict, found.reason) == (Verdict.CANNOT_RUN, Reason.UNSUPPORTED)
        assert found.why == "This program does not start SGLang."
        assert [finding.id for finding in found.missing] == ["engine.not_started"]

    through(work)


def test_on_this_machine_what_is_missing_is_named_with_its_command() -> None:
    async def work(opened: Door) -> None:
        page = await judge(opened)
        assert page.hardware == "this machine, which has no GPU"
        assert page.verdicts[0].verdict is Verdict.FITS
        small = of(page, "qwen3-embedding-0.6b-cpu")
        missing = {finding.id: finding for finding in small.missing}
        assert set(missing) == {"weights.missing", "engine.missing"}
        fix = missing["weights.missing"].fix
        assert fix is not None
        assert fix.command is not None
        revision = "370f27d7550e0def9b39c1f16d3fbaa13aa67728"
        assert fix.command == (
            f"sndr models download Qwen/Qwen3-Embedding-0.6B-GGUF --revision {revision} "
            "--choice Qwen3-Embedding-0.6B-Q8_0.gguf"
        )
        large = of(page, "qwen3.6-27b-q4-24")
        assert (large.needed, large.room, large.largest_context) == (None, None, None), "not of the processor"
        assert (large.verdict, large.why) == (
            Verdict.CANNOT_RUN,
            "It needs a GPU of 24 GiB; this machine has none.",
        )

    through(work)


def test_hardware_that_nobody_knows_is_refused() -> None:
    async def work(opened: Door) -> None:
        answer = await opened.client.post("/v1/presets/verdicts", json={"hardware": "rtx-9090"})
        assert ErrorAnswer.model_validate_json(answer.text).error.reason is Reason.NOT_FOUND

    through(work)


def test_the_fit_of_a_preset_is_that_of_the_settings_it_resolves_to() -> None:
    async def work(opened: Door) -> None:
        found = await fit(opened, preset="qwen3.6-27b-int4-2x24", hardware="2x rtx-3090")
        assert found.preset == "qwen3.6-27b-int4-2x24"
        assert (found.model, found.kv) == ("qwen3.6-27b/int4-autoround", "fp8_e4m3")
        assert (found.context, found.streams, found.tensor_parallel) == (262144, 2, 2)
        page = await judge(opened, hardware="rtx-3090", count=2)
        same = of(page, "qwen3.6-27b-int4-2x24")
        assert (found.devices[0].needed, found.devices[0].room) == (same.needed, same.room)
        less = await fit(opened, preset=found.preset, hardware="2x rtx-3090", gpu_memory=0.82)
        tenth = (24 << 30) // 10
        assert found.devices[0].room - less.devices[0].room == pytest.approx(tenth), "0.92 by the preset"

    through(work)


def test_what_is_asked_wins_over_the_preset() -> None:
    async def work(opened: Door) -> None:
        plain = await fit(opened, preset="qwen3.6-27b-int4-2x24", hardware="2x rtx-3090")
        less = await fit(
            opened,
            preset="qwen3.6-27b-int4-2x24",
            hardware="2x rtx-3090",
            context=8192,
            streams=8,
            kv="auto",
            speculation=False,
        )
        assert (less.context, less.streams, less.kv) == (8192, 8, "auto")
        assert less.kv_bytes_per_token == 2 * plain.kv_bytes_per_token
        names = {part.name: part.size for part in less.devices[0].parts}
        assert names["weights"] < {part.name: part.size for part in plain.devices[0].parts}["weights"]

    through(work)


def test_layers_that_contradict_each_other_cannot_run() -> None:
    async def work(opened: Door) -> None:
        found = await fit(opened, preset="qwen3.6-27b-int4-2x24", hardware="2x rtx-3090", context=1 << 20)
        assert (found.verdict, found.reason) == (Verdict.CANNOT_RUN, Reason.PRESET_CONFLICT)
        assert "override" in found.why
        found = await fit(opened, preset="qwen3.6-27b-int4-2x24", hardware="4x rtx-3090", tensor_parallel=8)
        assert found.reason is Reason.PRESET_CONFLICT

    through(work)


def test_gpus_that_are_described_are_checked_against_what_a_preset_needs() -> None:
    async def work(opened: Door) -> None:
        card = {"name": "card", "total": 24 << 30, "sm": "7.5"}
        found = await fit(opened, preset="qwen3.6-27b-k8v4-24", gpus=[card])
        assert (found.verdict, found.reason) == (Verdict.CANNOT_RUN, Reason.UNSUPPORTED)
        assert found.why == "It needs compute capability 8.0; card has 7.5."
        assert found.devices[0].name == "card"
        small = await fit(opened, preset="qwen3.6-27b-k8v4-24", gpus=[card | {"total": 12 << 30}])
        assert (small.verdict, small.changes) == (Verdict.CANNOT_RUN, ())

    through(work)


def test_a_drafter_of_its_own_is_loaded_too() -> None:
    async def work(opened: Door) -> None:
        drafted = await fit(opened, preset="gemma-4-31b-2x24", hardware="2x rtx-a5000")
        alone = await fit(opened, preset="gemma-4-31b-2x24", hardware="2x rtx-a5000", speculation=False)
        weights = [
            next(part.size for part in report.devices[0].parts if part.name == "weights")
            for report in (drafted, alone)
        ]
        assert weights[0] - weights[1] == pytest.approx(0.97e9 / 2, rel=0.01), "half of it on each GPU"
        assert not any("drafter" in unknown for unknown in drafted.unknown), "it reads the model's own cache"
        assert not any("drafter" in unknown for unknown in alone.unknown)

    through(work)


def test_a_question_says_what_was_asked_and_nothing_else() -> None:
    asked = FitRequest(preset="p", streams=1, eager=False)
    assert asked.model_dump(mode="json") == {"preset": "p", "streams": 1, "eager": False}
    assert FitRequest.model_validate(asked.model_dump()).model_fields_set == asked.model_fields_set


def test_a_preset_of_an_engine_that_is_not_started_has_no_figures() -> None:
    async def work(opened: Door) -> None:
        found = await fit(opened, preset="qwen3.6-35b-a3b-sglang-4xl4", hardware="4x l4")
        assert (found.verdict, found.devices) == (Verdict.CANNOT_RUN, ())

    through(work)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"preset": "nobody"}, Reason.NOT_FOUND),
        ({"preset": "demo-vllm", "hardware": "rtx-9090"}, Reason.NOT_FOUND),
        ({"preset": "demo-vllm", "streams": 4000}, Reason.BAD_REQUEST),
    ],
)
def test_a_question_that_means_nothing_is_refused(body: dict[str, Any], reason: Reason) -> None:
    async def work(opened: Door) -> None:
        answer = await opened.client.post("/v1/fit", json=body)
        assert ErrorAnswer.model_validate_json(answer.text).error.reason is reason

    through(work)


def test_every_preset_can_be_asked_for_without_hardware() -> None:
    async def work(opened: Door) -> None:
        page = PresetPage.model_validate_json((await opened.client.get("/v1/presets")).text)
        for item in page.presets:
            found = await fit(opened, preset=item.preset.id)
            assert found.preset == item.preset.id

    through(work)


def test_what_does_not_fit_names_the_variant_that_does() -> None:
    async def work(opened: Door) -> None:
        asked = {"hardware": "2x rtx-3090", "context": 131_072}
        found = await fit(opened, model="qwen3.6-27b/bf16", **asked)
        assert found.verdict is Verdict.DOES_NOT_FIT
        first = found.changes[0]
        assert (first.id, first.fits, first.text) == (
            "weights",
            True,
            "Take qwen3.6-27b/fp8, which is smaller.",
        )
        other = await fit(opened, model="qwen3.6-27b/fp8", **asked)
        assert other.verdict in {Verdict.FITS, Verdict.TIGHT}
        small = await fit(opened, model="qwen3.6-27b/int4-autoround", hardware="rtx-3060-12gb")
        assert "weights" not in {one.id for one in small.changes}, "there is no lighter one for its engine"

    through(work)
