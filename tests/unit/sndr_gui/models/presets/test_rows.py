"""The list of presets: best first, narrowed by facets, and quiet about what is for other machines."""

from dataclasses import replace

from engine_host.core.findings.table import finding
from engine_host.protocol.catalog import Evidence, PresetStatus, Workload
from engine_host.protocol.launch.fit import Verdict
from sndr_gui.models.fit.device_memory import VERDICTS
from sndr_gui.models.presets.rows import (
    STATUS_MEANS,
    PresetFacets,
    PresetRow,
    choices,
    passes,
    preset_columns,
    preset_rows,
    workload_words,
)
from tests.views.samples import presets as preset_samples


def rows() -> list[PresetRow]:
    return preset_rows(preset_samples.presets().presets, preset_samples.verdicts().verdicts)


def ids(found: list[PresetRow]) -> list[str]:
    return [row.item.preset.id for row in found]


def test_what_works_best_comes_first_and_what_was_not_judged_last() -> None:
    verdicts = preset_samples.verdicts().verdicts
    assert ids(rows()) == ["demo-llamacpp", "my-27b", "big-24", "big-long", "on-sglang"]
    known = preset_rows(preset_samples.presets().presets, verdicts[2:3])
    assert ids(known)[0] == "big-24"
    assert known[1].here == ("checking…", "muted")
    assert not known[1].works


def test_what_fits_is_ready_only_when_nothing_has_to_be_fetched_first() -> None:
    by_id = {row.item.preset.id: row for row in rows()}
    assert by_id["demo-llamacpp"].ready
    assert by_id["demo-llamacpp"].here == ("fits", "good")
    assert by_id["big-24"].works
    assert not by_id["big-24"].ready
    assert by_id["big-24"].here == ("tight, not ready", "muted")
    assert not by_id["on-sglang"].ready


def test_facets_narrow_together() -> None:
    def left(**wanted: object) -> list[str]:
        return ids([row for row in rows() if passes(row, PresetFacets(**wanted))])  # type: ignore[arg-type]

    assert left(here=True) == ["demo-llamacpp", "my-27b", "big-24"]
    assert left(engine="vllm", here=True) == ["my-27b", "big-24"]
    assert left(status="experimental") == ["big-long"]
    assert left(workload="long-context") == ["big-long"]
    assert left(workload="long-context", here=True) == []
    assert len(left()) == 5


def test_nothing_is_hidden_before_it_was_judged() -> None:
    known = preset_rows(preset_samples.presets().presets, ())
    assert all(passes(row, PresetFacets(here=True)) for row in known)


def test_a_facet_offers_what_occurs() -> None:
    assert choices("engine", rows()) == [
        ("Engine", ""),
        ("llama.cpp", "llama.cpp"),
        ("vLLM", "vllm"),
        ("SGLang", "sglang"),
    ]
    assert [value for _, value in choices("status", rows())] == ["", "verified", "reported", "experimental"]
    assert ("long context", "long-context") in choices("workload", rows())


def test_the_search_finds_ids_models_and_tasks() -> None:
    columns = preset_columns()
    text = " ".join(column.text(rows()[2]) for column in columns)
    for word in ("big-24", "Big 27B", "int4", "tools", "vLLM", "coding"):
        assert word in text


def test_a_ceiling_that_is_not_known_is_a_dash_and_sorts_last() -> None:
    speed = preset_columns()[2]
    texts = {row.item.preset.id: speed.text(row) for row in rows()}
    assert texts["my-27b"] == "48.5"
    assert texts["demo-llamacpp"] == "—"
    assert speed.sort is not None
    assert ids(sorted(rows(), key=speed.sort))[:2] == ["my-27b", "big-24"]


def test_a_preset_for_another_machine_is_no_alarm() -> None:
    tones = {row.item.preset.id: row.here for row in rows()}
    assert tones["on-sglang"] == ("deployment only", "muted")
    assert tones["big-long"] == ("does not fit", "bad")
    assert tones["big-24"] == ("tight, not ready", "muted")
    assert "1 thing missing" in rows()[2].why


def test_what_another_machine_would_need_is_said_in_the_list() -> None:
    row = next(row for row in rows() if row.item.preset.id == "big-24")
    assert row.verdict is not None
    lacks = finding("preset.gpus", gpus="2 GPUs of 24 GiB", there="this machine has none")
    verdict = row.verdict.model_copy(update={"verdict": Verdict.CANNOT_RUN, "missing": (lacks,)})
    assert replace(row, verdict=verdict).here == (f"needs {row.item.preset.needs.short}", "muted")
    old = verdict.model_copy(update={"missing": (lacks.model_copy(update={"id": "preset.sm"}),)})
    assert replace(row, verdict=old).here[0].startswith("needs SM ")


def test_every_status_and_workload_has_words() -> None:
    assert set(STATUS_MEANS) == set(PresetStatus)
    assert all(workload_words(workload) for workload in Workload)
    assert set(VERDICTS) == set(Verdict)
    assert {row.verdict.verdict for row in rows() if row.verdict} == set(Verdict) - {Verdict.UNKNOWN}


def test_a_ceiling_is_shown_without_drafts_and_says_what_they_add() -> None:
    evidence = Evidence(
        metric="m", value=70.7, machine="2 x RTX 3090", pin="p", by="others", source="s", streams=1
    )
    row = next(row for row in rows() if row.item.preset.id == "big-24")
    assert row.verdict is not None
    speed = next(column for column in preset_columns() if column.title == "≤ tok/s")
    assert speed.tip is not None
    assert "without draft tokens" not in speed.tip(row)
    told = {"decode": 482.0, "decode_undrafted": 120.5, "measured": evidence, "measured_why": "As it is."}
    drafting = replace(row, verdict=row.verdict.model_copy(update=told))
    assert speed.text(drafting) == "120"
    assert "482 tok/s if all were accepted" in speed.tip(drafting)
    assert "Measured by others on this hardware: 70.7 tok/s.\nAs it is." in speed.tip(drafting)


def test_what_is_not_known_is_not_hidden_with_what_does_not_work() -> None:
    row = rows()[0]
    assert row.verdict is not None
    unknown = replace(row, verdict=row.verdict.model_copy(update={"verdict": Verdict.UNKNOWN}))
    assert not unknown.works
    assert unknown.here == ("not known", "muted")
    assert passes(unknown, PresetFacets(here=True))
