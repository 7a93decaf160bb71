"""Fit over the control API, with the catalogue that ships."""

import json
from pathlib import Path
from typing import Any

import pytest

from engine_host.catalog.index import Catalog
from engine_host.core.package_data import resources
from engine_host.fit.estimate import blocker, estimate
from engine_host.fit.report import start_of
from engine_host.fit.shapes.read import model_of_config
from engine_host.operations.fit import device_of
from engine_host.protocol.errors import ErrorAnswer, Reason
from engine_host.protocol.launch.fit import FitReport, FitRequest, MeasuredPage, PartSource, Verdict
from tests.shipped_catalog import shipped
from tests.unit.api.door import Door, door
from tests.unit.asynchronous import run

pytestmark = pytest.mark.usefixtures("home")
CONFIG = resources() / "models" / "sndr-demo" / "config.json"
CARD = {"name": "card", "total": 24 << 30, "taken": 1 << 30, "sm": "8.6", "bandwidth": 9e11}


async def fit(opened: Door, **body: Any) -> FitReport:
    answer = await opened.client.post("/v1/fit", json=body)
    assert answer.status_code == 200, answer.text
    return FitReport.model_validate_json(answer.text)


async def refused(opened: Door, **body: Any) -> ErrorAnswer:
    answer = await opened.client.post("/v1/fit", json=body)
    assert not answer.is_success
    return ErrorAnswer.model_validate_json(answer.text)


def test_a_model_of_the_catalogue_on_hardware_of_it() -> None:
    async def test() -> None:
        async with door() as opened:
            report = await fit(opened, model="qwen3.6-27b/int4-autoround", hardware="2x rtx-3090")
            assert (report.tensor_parallel, len(report.devices)) == (2, 2)
            assert report.devices[0].total == 24 << 30
            assert report.roofline is not None
            assert report.roofline.decode is not None
            files = sum(part.size for part in report.devices[0].parts if part.name == "weights") * 2
            assert files == pytest.approx(17.5e9, rel=0.06), (
                "the size that is reported, without drafting layers"
            )

    run(test())


def test_a_config_on_gpus_that_are_described() -> None:
    async def test() -> None:
        async with door() as opened:
            report = await fit(opened, model=str(CONFIG), gpus=[CARD], context=2048, streams=4, grid=True)
            assert report.verdict is Verdict.FITS
            assert report.grid
            assert report.devices[0].taken == 1 << 30

    run(test())


def test_without_a_gpu_it_is_the_processor() -> None:
    async def test() -> None:
        async with door() as opened:
            report = await fit(opened, model=str(CONFIG), context=2048)
            assert [device.name for device in report.devices] == ["processor"]
            page = MeasuredPage.model_validate_json((await opened.client.get("/v1/fit/starts")).text)
            assert page.starts == ()

    run(test())


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"model": "qwen3.6-27b", "hardware": "rtx-9090"}, Reason.NOT_FOUND),
        ({"model": "qwen3.6-27b/int1", "hardware": "rtx-3090"}, Reason.NOT_FOUND),
        ({"model": "nobody"}, Reason.MODEL_FILE_MISSING),
        ({"model": "/nowhere/config.json"}, Reason.MODEL_FILE_MISSING),
        ({"model": "qwen3.6-27b", "hardware": "h200", "kv": "nvfp4"}, Reason.KV_TYPE_UNSUPPORTED),
        ({"model": "qwen3.6-27b", "contxt": 5}, Reason.BAD_REQUEST),
        ({"model": "qwen3.6-27b", "hardware": "0x h100"}, Reason.BAD_REQUEST),
        ({"model": "qwen3.6-27b", "hardware": "9x h100"}, Reason.BAD_REQUEST),
    ],
)
def test_what_is_not_known_is_refused_with_its_reason(body: dict[str, Any], reason: Reason) -> None:
    async def test() -> None:
        async with door() as opened:
            assert (await refused(opened, **body)).error.reason is reason

    run(test())


@pytest.mark.parametrize(
    ("model", "kv", "engine", "near"),
    [
        ("qwen3.6-27b", "turboquant_k8v5", "vllm", "turboquant_k8v4"),
        ("qwen3.6-27b/bf16", "q8_0", "vllm", "llama.cpp"),
        ("sndr-demo/q8-0", "q8", "llama.cpp", "q8_0"),
        ("sndr-demo/q8-0", "fp8", "llama.cpp", "f16"),
    ],
)
def test_an_unknown_kv_type_is_a_wrong_value(model: str, kv: str, engine: str, near: str) -> None:
    async def test() -> None:
        async with door() as opened:
            error = (await refused(opened, model=model, hardware="h200", kv=kv)).error
            assert error.reason is Reason.SETTING_INVALID
            assert f"{engine} has no KV type {kv}" in error.message
            assert near in (error.fix.text if error.fix else "")

    run(test())


def test_a_variant_that_is_not_there_names_those_that_are() -> None:
    async def test() -> None:
        async with door() as opened:
            error = (await refused(opened, model="qwen3.6-27b/nope")).error
            assert "qwen3.6-27b/int4-autoround" in (error.fix.text if error.fix else "")

    run(test())


def test_a_name_that_is_no_model_says_what_it_may_be() -> None:
    async def test() -> None:
        async with door() as opened:
            preset = (await refused(opened, model="demo-llamacpp")).error
            assert preset.fix is not None
            assert preset.fix.text == "It is a preset: sndr fit --preset demo-llamacpp"
            near = (await refused(opened, model="qwen3.6-27")).error
            assert near.fix is not None
            assert "qwen3.6-27b" in near.fix.text
            assert "--preset" in near.fix.text

    run(test())


def test_a_preset_of_another_engine_than_the_model_needs_says_so() -> None:
    async def test() -> None:
        async with door() as opened:
            answer = await refused(opened, preset="demo-llamacpp", model="qwen3.6-27b", engine="auto")
            assert answer.error.reason is Reason.UNSUPPORTED
            assert "llama.cpp, which does not read qwen3.6-27b/" in answer.error.message
            assert answer.error.fix is not None
            assert answer.error.fix.command == "sndr presets list --engine vllm"
            answer = await refused(opened, preset="demo-llamacpp", engine="vllm")
            assert answer.error.reason is Reason.SETTING_INVALID
            assert answer.error.fix is not None
            assert answer.error.fix.command == "sndr presets list --engine vllm"

    run(test())


def test_a_preset_for_the_processor_takes_the_cache_that_it_reserves() -> None:
    async def test() -> None:
        async with door() as opened:
            plain = await fit(opened, preset="demo-vllm")
            assert plain.devices[0].parts[-1].size == 1 << 30, "as its file says"
            for gib in (2, 40):
                report = await fit(opened, preset="demo-vllm", kv_cache_gib=gib)
                assert report.devices[0].parts[-1].size == gib << 30
            assert report.verdict is Verdict.DOES_NOT_FIT
            assert report.why.endswith(" GiB are missing.")
            assert not report.why.startswith("-")

    run(test())


def test_weights_of_the_catalogue_are_not_said_to_be_read() -> None:
    async def test() -> None:
        async with door() as opened:
            report = await fit(opened, model="qwen3.6-27b/int4-autoround", hardware="l40s")
            weights = next(part for part in report.devices[0].parts if part.name == "weights")
            assert weights.source is PartSource.CATALOGUE
            assert "none was read here" in weights.note

    run(test())


def test_a_gguf_file_that_is_not_here_has_tables_as_its_quantizer_makes_them() -> None:
    async def test() -> None:
        async with door() as opened:
            asked: dict[str, Any] = {"preset": "qwen3.6-27b-q4-24", "hardware": "rtx-3090"}
            report = await fit(opened, **asked)
            sizes = {part.name: part.size for part in report.devices[0].parts}
            # 17.1 GB of file, of which the embedding (248,320 × 5,120 at 4.5 bits) stays in main memory.
            assert sizes["weights"] == pytest.approx(17_106_773_120 - 248_320 * 5_120 * 4.5 / 8, rel=0.001)
            assert sizes["attention's copies"] == pytest.approx(200_192 * 4 * 512 * 2, rel=0.2)
            # What its card tells of the same start: 22.4 GB of VRAM.
            assert report.devices[0].needed == pytest.approx(22.4 * 2**30, rel=0.05)
            beside = await fit(opened, **asked, taken_gib=1.5)
            assert beside.devices[0].room == round(22.5 * 2**30)
            assert beside.verdict is Verdict.TIGHT

    run(test())


def test_a_model_without_a_variant_is_the_largest_that_fits() -> None:
    async def test() -> None:
        async with door() as opened:
            report = await fit(opened, model="qwen3.6-27b", hardware="rtx 3090")
            assert (report.verdict, report.model) == (Verdict.FITS, "qwen3.6-27b/q5-k-xl")
            assert "qwen3.6-27b/bf16" in report.variants
            report = await fit(opened, model="qwen3-8b", hardware="RTX 3060", engine="llama.cpp")
            assert (report.verdict, report.model) == (Verdict.FITS, "qwen3-8b/q4-k-m")
            report = await fit(opened, model="qwen3.6-27b", hardware="rtx-3060", engine="llama.cpp")
            assert (report.verdict, report.model) == (Verdict.DOES_NOT_FIT, "qwen3.6-27b/q4-k-m")
            report = await fit(opened, model="qwen3.6-27b", hardware="h200")
            assert report.model == "qwen3.6-27b/bf16"
            report = await fit(opened, model="qwen3-8b", hardware="rtx-3090", kv="q4_0")
            assert (report.engine, report.kv) == ("llama.cpp", "q4_0")
            for said in ("qwen3-8b/q4_k_m", "qwen3-8b/Q4-K-M", "Qwen3_8B/Q4_K_M"):
                report = await fit(opened, model=said, hardware="rtx-3090")
                assert (report.model, report.variants) == ("qwen3-8b/q4-k-m", ())

    run(test())


def test_what_an_engine_does_not_read_names_what_it_does() -> None:
    async def test() -> None:
        async with door() as opened:
            report = await fit(opened, model="qwen3-8b/bf16", hardware="rtx-3090", engine="llama.cpp")
            assert report.verdict is Verdict.CANNOT_RUN
            (change,) = report.changes
            assert change.fits
            assert change.asks == {"model": "qwen3-8b/q4-k-m"}
            report = await fit(opened, model="qwen3.6-27b/bf16", hardware="rtx-3090")
            texts = [change.text for change in report.changes if change.fits]
            assert "Take qwen3.6-27b/int4-autoround, which is smaller." in texts
            assert "Take qwen3.6-27b/q5-k-xl with llama.cpp." in texts

    run(test())


def test_more_context_than_trained_names_what_there_is() -> None:
    async def test() -> None:
        async with door() as opened:
            for model in ("qwen3-8b", "qwen3-8b/q4-k-m", "qwen3-8b/bf16"):
                report = await fit(opened, model=model, hardware="rtx-3090", context=131_072)
                assert report.verdict is Verdict.CANNOT_RUN
                (change,) = report.changes
                assert (change.fits, change.option) == (True, "--context 40960")
                assert "yarn" in {one.id for one in report.advice}
                assert report.roofline is None

    run(test())


def test_layers_and_experts_in_main_memory_make_room() -> None:
    async def test() -> None:
        async with door() as opened:
            for model, names in (
                ("qwen3.6-27b/q4-k-m", {"gpu_layers"}),
                ("qwen3.6-35b-a3b/iq4-xs", {"gpu_layers", "cpu_experts"}),
            ):
                asked: dict[str, Any] = {"model": model, "hardware": "rtx-3060-12gb"}
                report = await fit(opened, **asked)
                assert (report.verdict, report.roofline) == (Verdict.DOES_NOT_FIT, None)
                found = {change.id: change for change in report.changes if change.fits}
                assert names <= set(found)
                assert report.changes[0].id in names, "two GPUs come after what costs nothing"
                for name in names:
                    after = await fit(opened, **asked, **found[name].asks)
                    assert after.verdict in {Verdict.FITS, Verdict.TIGHT}
                    assert after.roofline is not None
                    assert after.roofline.decode is None
                    assert "are read of main memory" in after.roofline.why
                    assert "main memory" in after.devices[0].parts[0].note

    run(test())


def test_more_gpus_than_there_are_cannot_run() -> None:
    async def test() -> None:
        async with door() as opened:
            model = "qwen3.6-27b/int4-autoround"
            report = await fit(opened, model=model, hardware="2x rtx-3090", tensor_parallel=4)
            assert (report.verdict, report.reason) == (Verdict.CANNOT_RUN, Reason.ENGINE_UNUSABLE)
            assert report.why == "It needs 4 GPUs; there are 2."

    run(test())


def test_twice_as_many_gpus_are_asked_for_by_the_hardware() -> None:
    async def test() -> None:
        async with door() as opened:
            body: dict[str, Any] = {"model": "qwen3.6-27b/bf16", "hardware": "2x rtx-3090", "context": 8192}
            for more, option in (({}, ""), ({"tensor_parallel": 2}, " --tp 4")):
                report = await fit(opened, **body, **more)
                assert report.verdict is Verdict.DOES_NOT_FIT
                change = next(one for one in report.changes if one.id == "gpus")
                assert (change.option, change.gpus) == ('--hardware "4x rtx-3090"' + option, 4)

    run(test())


def test_a_config_that_is_silent_names_the_key(tmp_path: Path) -> None:
    config = json.loads(CONFIG.read_text(encoding="utf-8"))
    del config["num_hidden_layers"]
    (tmp_path / "config.json").write_text(json.dumps(config))

    async def test() -> None:
        async with door() as opened:
            error = (await refused(opened, model=str(tmp_path / "config.json"))).error
            assert (error.reason, error.evidence) == (Reason.UNSUPPORTED, {"key": "num_hidden_layers"})

    run(test())


def catalogue() -> Catalog:
    return shipped()


def test_every_variant_of_every_model_has_an_answer_on_all_hardware() -> None:
    catalog, answers = catalogue(), 0
    for name, loaded in catalog.models.items():
        entry = loaded.entry
        for variant in entry.variants:
            read = model_of_config(
                entry.shape,
                f"{name}/{variant.id}",
                gguf=variant.format == "gguf",
                context=entry.context,
                bits=variant.bits,
                size=variant.size,
            )
            for hardware in catalog.hardware.values():
                for count in (1, 2, 4, 8):
                    devices = [device_of(hardware.entry, number) for number in range(count)]
                    start = start_of(FitRequest(model=name), read, devices, cpu=False)
                    if blocker(read, start) is None:
                        found = estimate(read, start)
                        assert found.needed > 0
                    answers += 1
    assert answers >= 1000
