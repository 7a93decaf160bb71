"""The first run in words: places of models, presets that work, and the model to begin with."""

from engine_host.client.first_run.overview import (
    first_measurement,
    only_bundled,
    places,
    presets_sentence,
    ready_presets,
    recommended,
)
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.launch.fit import Verdict
from engine_host.protocol.models import ModelFile, ModelOrigin
from engine_host.protocol.presets import PresetVerdict

DAMAGED = Problem(reason=Reason.MODEL_FILE_DAMAGED, message="It is cut off.")


def model(name: str, found_in: str = "Ollama", **more: object) -> ModelFile:
    origin = ModelOrigin.BUNDLED if found_in == "" else ModelOrigin.OTHER_PROGRAM
    told = {"format": "GGUF", "size": 1 << 30, "path": f"/m/{name}", **more}
    return ModelFile.model_validate(
        {"id": name, "name": name, "origin": origin, "found_in": found_in, **told}
    )


def test_models_are_told_by_their_place_and_the_bundled_one_is_the_first() -> None:
    mine = [model("demo-vllm", "", format="safetensors"), model("demo", "", size=12 << 20)]
    assert only_bundled(mine)
    found = recommended(mine)
    assert found is not None
    assert found.id == "demo", "the one that runs everywhere"
    assert recommended([model("demo", "", problem=DAMAGED)]) is None
    assert recommended([model("other")]) is None
    every = [*mine, model("a"), model("b", problem=DAMAGED), model("c", "LM Studio")]
    assert not only_bundled(every)
    assert [(one.name, one.about) for one in places(every)] == [
        ("with this program", "2 models, 1.0 GiB"),
        ("Ollama", "2 models, 2.0 GiB, 1 cannot be used"),
        ("LM Studio", "1 model, 1.0 GiB"),
    ]
    assert places(()) == ()


def test_presets_are_counted_by_what_fits_and_what_is_ready() -> None:
    no, far = (PresetVerdict(preset=name, verdict=Verdict.CANNOT_RUN) for name in ("no", "far"))
    fits = PresetVerdict(preset="fits", verdict=Verdict.TIGHT)
    ready = PresetVerdict(preset="best", verdict=Verdict.FITS, model="m")
    assert presets_sentence((no, far)).startswith("None of the 2 presets fits here")
    assert presets_sentence((fits, no)) == "1 of 2 presets fit here; the models of none of them are here yet."
    assert presets_sentence((ready, fits)) == "2 of 2 presets fit here; ready to start: best."
    assert "best and 1 more" in presets_sentence((ready, ready.model_copy(update={"preset": "b"})))
    assert ready_presets((ready, fits, no)) == ("best",)


def test_the_first_measurement_has_its_command() -> None:
    assert first_measurement("demo").command == "sndr bench run quick --engine demo --rounds 3"
