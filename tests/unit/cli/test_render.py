"""`sndr render` and `sndr launch --render` against a host of canned answers, as renderings really are."""

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine_host.protocol.launch.deploy import Rendering, RenderTarget
from tests.unit.cli.fake_host import FakeHost
from tests.unit.deploy.samples import rendered, wanted_of
from tests.views.samples import presets as preset_samples

Sndr = Callable[..., tuple[int, str, str]]
PRESET = "qwen3.6-27b-k8v4-2x24"


@pytest.fixture
def answer(host: FakeHost) -> Rendering:
    """Return the host's answer: a start of vLLM with an overlay."""
    made = rendered(wanted_of(PRESET), RenderTarget.DOCKER)
    host.answers["POST /v1/render"] = (200, made.model_dump(mode="json"))
    host.answers["GET /v1/presets"] = (200, {"seq": 0, "presets": []})
    return made


def body(host: FakeHost) -> Any:
    """Return the body of the last request."""
    return host.received[-1][2]


def test_prints_the_first_file(host: FakeHost, sndr: Sndr, answer: Rendering) -> None:
    code, out, err = sndr("launch", PRESET, "--render", "docker")
    assert code == 0
    assert out == answer.files[0].text
    assert "3 more files" in err
    assert "not pulled or run" in err
    assert body(host)["launch"]["preset"] == PRESET
    assert body(host)["target"] == "docker"


def test_writes_all_files(host: FakeHost, sndr: Sndr, answer: Rendering, tmp_path: Path) -> None:
    folder = tmp_path / "a b"
    code, out, _ = sndr(
        *("launch", PRESET, "--render", "docker", "-o", str(folder), "--hardware", "l4", "--count", "2"),
        *("--gpu", "GPU-aaaaaaaa-1", "--port", "9000", "--address", "0.0.0.0", "--set", "context=4096"),
    )
    assert code == 0
    for file in answer.files:
        assert (folder / file.name).read_text(encoding="utf-8") == file.text
    assert stat.S_IMODE((folder / "start.sh").stat().st_mode) == 0o755
    assert stat.S_IMODE((folder / "secrets.env").stat().st_mode) == 0o600
    assert f"Start: (cd '{folder}' && ./start.sh)" in out
    assert f"Check: (cd '{folder}' && bash -n start.sh)" in out
    received = body(host)
    assert (received["hardware"], received["count"], received["port"]) == ("l4", 2, 9000)
    assert (received["gpus"], received["address"]) == (["GPU-aaaaaaaa-1"], "0.0.0.0")
    assert received["launch"]["overrides"]["context"] == 4096


def test_json_names_the_folder(sndr: Sndr, answer: Rendering, tmp_path: Path) -> None:
    _, out, err = sndr("launch", PRESET, "--render", "docker", "-o", str(tmp_path / "x"), "--json")
    assert json.loads(out)["folder"] == str(tmp_path / "x")
    assert err == ""
    _, out, _ = sndr("launch", PRESET, "--render", "docker", "--json")
    assert Rendering.model_validate_json(out) == answer


def test_what_a_person_changed_stays(host: FakeHost, sndr: Sndr, answer: Rendering, tmp_path: Path) -> None:
    words = ("launch", PRESET, "--render", "docker", "-o", str(tmp_path))
    assert sndr(*words)[0] == 0
    (tmp_path / "secrets.env").write_text("VLLM_API_KEY=mine\n", encoding="utf-8")
    assert sndr(*words)[0] == 0, "its own files may be written again"
    assert (tmp_path / "secrets.env").read_text(encoding="utf-8").startswith("VLLM_API_KEY=mine\n")
    script = tmp_path / "start.sh"
    script.write_text("# mine\n", encoding="utf-8")
    code, _, err = sndr(*words)
    assert code == 6
    assert "start.sh" in err
    assert script.read_text(encoding="utf-8") == "# mine\n"
    assert sndr(*words, "--overwrite")[0] == 0
    assert script.read_text(encoding="utf-8") == answer.files[0].text


def test_a_file_that_was_there_before_is_not_overwritten(
    host: FakeHost, sndr: Sndr, answer: Rendering, tmp_path: Path
) -> None:
    (tmp_path / "start.sh").write_text("somebody's\n", encoding="utf-8")
    assert sndr("launch", PRESET, "--render", "docker", "-o", str(tmp_path))[0] == 6
    assert [path.name for path in tmp_path.iterdir()] == ["start.sh"], "nothing else was written either"


def test_files_that_are_not_needed_any_more_go(
    host: FakeHost, sndr: Sndr, answer: Rendering, tmp_path: Path
) -> None:
    words = ("launch", PRESET, "--render", "docker", "-o", str(tmp_path))
    assert sndr(*words)[0] == 0
    changed = tmp_path / "overlay" / "sitecustomize.py"
    changed.write_text("mine\n", encoding="utf-8")
    fewer = answer.model_copy(update={"files": answer.files[:1]})
    host.answers["POST /v1/render"] = (200, fewer.model_dump(mode="json"))
    assert sndr(*words)[0] == 0
    assert not (tmp_path / "overlay" / "manifest.json").exists()
    assert changed.exists(), "somebody changed it"
    assert (tmp_path / "secrets.env").exists()


def test_a_record_reaches_nothing_outside_of_its_folder(
    host: FakeHost, sndr: Sndr, answer: Rendering, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("", encoding="utf-8")
    folder = tmp_path / "in"
    folder.mkdir()
    digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    record = {"files": {"../outside": digest, str(outside): digest}}
    (folder / ".sndr-rendering.json").write_text(json.dumps(record), encoding="utf-8")
    assert sndr("launch", PRESET, "--render", "docker", "-o", str(folder))[0] == 0
    assert outside.exists()
    (folder / ".sndr-rendering.json").write_text("{", encoding="utf-8")
    assert sndr("launch", PRESET, "--render", "docker", "-o", str(folder))[0] == 0


def test_a_model_by_its_name(host: FakeHost, sndr: Sndr, answer: Rendering) -> None:
    assert sndr("render", "some-model", "--target", "docker")[0] == 0
    launch = body(host)["launch"]
    assert (launch["model"], launch.get("preset")) == ("some-model", None)


@pytest.mark.parametrize("flags", [("--dry-run",), ("--dry-run", "--detach")])
def test_options_of_a_start_are_refused_with_a_target(
    host: FakeHost, sndr: Sndr, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    code, _, err = sndr("launch", PRESET, "--render", "docker", "-o", str(tmp_path / "out"), *flags)
    assert code == 2
    assert " and ".join(flags) in err
    assert not (tmp_path / "out").exists()
    assert not [name for name, _, _ in host.received if name.startswith("POST")]


def test_options_without_a_target_are_refused(host: FakeHost, sndr: Sndr) -> None:
    code, _, err = sndr("launch", PRESET, "--hardware", "l4")
    assert code == 2
    assert "--render" in err
    assert sndr("render", PRESET)[0] == 2


def test_values_that_are_wrong_are_named(host: FakeHost, sndr: Sndr) -> None:
    code, _, err = sndr("launch", PRESET, "--render", "docker", "--address", "nonsense")
    assert code == 2
    assert "--address" in err
    assert "'nonsense'" in err
    assert "--gpu" not in err
    code, _, err = sndr("launch", PRESET, "--render", "docker", "--hardware", "l4", "--gpu", "0")
    assert code == 2
    assert "--gpu takes UUIDs" in err
    assert "--address" not in err


def test_a_folder_that_cannot_be_written_is_told_as_such(
    host: FakeHost, sndr: Sndr, answer: Rendering
) -> None:
    code, _, err = sndr("launch", PRESET, "--render", "docker", "-o", "/proc/x")
    assert code == 7
    assert "--output" in err
    assert "SNDR_HOME" not in err


def test_the_folder_is_shown_as_it_is(host: FakeHost, sndr: Sndr, answer: Rendering, tmp_path: Path) -> None:
    folder = tmp_path / "x"
    _, out, _ = sndr("launch", PRESET, "--render", "docker", "-o", f"{tmp_path}/other/../x")
    assert f"is in {folder}:" in out


def test_another_start_is_not_written_over(
    host: FakeHost, sndr: Sndr, answer: Rendering, tmp_path: Path
) -> None:
    words = ("-o", str(tmp_path))
    assert sndr("launch", PRESET, "--render", "docker", *words)[0] == 0
    secrets = tmp_path / "secrets.env"
    secrets.write_text("VLLM_API_KEY=mine", encoding="utf-8")
    others = (
        rendered(wanted_of("qwen3.6-27b-q4-24"), RenderTarget.DOCKER),
        rendered(wanted_of(PRESET), RenderTarget.COMPOSE),
    )
    for other in others:
        host.answers["POST /v1/render"] = (200, other.model_dump(mode="json"))
        code, _, err = sndr("launch", other.name, "--render", other.target.value, *words)
        assert code == 6
        assert "sndr-qwen3-6-27b-k8v4-2x24 for docker" in err
        assert (tmp_path / "start.sh").read_text(encoding="utf-8") == answer.files[0].text
    host.answers["POST /v1/render"] = (200, others[0].model_dump(mode="json"))
    assert sndr("launch", PRESET, "--render", "docker", *words, "--overwrite")[0] == 0
    lines = secrets.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "VLLM_API_KEY=mine"
    assert "# LLAMA_API_KEY=" in lines
    assert "# HF_TOKEN=" in lines
    assert lines.count("# VLLM_API_KEY=") == 0
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o600
    assert not (tmp_path / "overlay" / "manifest.json").exists()


def test_an_error_is_written_down_by_force_alone(host: FakeHost, sndr: Sndr, answer: Rendering) -> None:
    assert sndr("launch", PRESET, "--render", "docker")[0] == 0
    assert not body(host).get("force")
    assert sndr("launch", PRESET, "--render", "docker", "--force")[0] == 0
    assert body(host)["force"] is True


def test_a_name_that_is_nothing_is_looked_for_among_presets_and_models(host: FakeHost, sndr: Sndr) -> None:
    listed = [item.model_dump(mode="json") for item in preset_samples.presets().presets]
    empty = {"seq": 0, "models": [], "hardware": [], "profiles": [], "engines": []}
    host.answers["GET /v1/catalog"] = (200, empty)
    unknown = {"reason": "model_file_missing", "message": "There is none."}
    host.answers["POST /v1/fit"] = (404, {"error": unknown})
    host.answers["POST /v1/presets/verdicts"] = (200, {"hardware": "this machine", "verdicts": []})
    model = {"id": "demo-mine", "name": "demo-mine", "path": "/m.gguf", "origin": "folder", "found_in": ""}
    host.answers["GET /v1/presets"] = (200, {"seq": 0, "presets": listed})
    host.answers["GET /v1/models"] = (
        200,
        {"seq": 0, "folders": [], "models": [{**model, "size": 1, "format": "GGUF"}]},
    )

    def absent() -> tuple[int, Any]:
        launch = host.received[-1][2].get("launch", host.received[-1][2])
        evidence = {"wanted": launch["model"]}
        problem = {"reason": "model_file_missing", "message": "There is none.", "evidence": evidence}
        return 404, {"error": problem}

    host.answers["POST /v1/render"] = host.answers["POST /v1/plans"] = absent
    code, _, err = sndr("render", "demo-llamcpp", "--target", "shell")
    assert (code, "Did you mean the preset demo-llamacpp" in err) == (4, True)
    code, _, err = sndr("run", "demo-min")
    assert (code, "the model demo-mine" in err, "$ sndr run demo-mine" in err) == (4, True, True)
    assert "$ sndr launch demo-llamacpp" in sndr("run", "demo-llamacpp", "--dry-run")[2]
    err = sndr("run", "Qwen/Qwen3-8B-GGUF")[2]
    assert "$ sndr models download Qwen/Qwen3-8B-GGUF" in err
    judged = [{"preset": item["preset"]["id"], "verdict": "cannot_run"} for item in listed]
    host.answers["POST /v1/presets/verdicts"] = (200, {"hardware": "none", "verdicts": judged})
    assert "demo-llamacpp" not in sndr("render", "demo-llamcpp", "--target", "shell")[2], "it cannot run here"


def test_a_model_of_the_catalogue_that_is_not_here_is_downloaded_first(host: FakeHost, sndr: Sndr) -> None:
    problem = {
        "reason": "model_file_missing",
        "message": "There is none.",
        "evidence": {"wanted": "qwen3-8b"},
    }
    host.answers["POST /v1/plans"] = (404, {"error": problem})
    host.answers["GET /v1/presets"] = (200, {"seq": 0, "presets": []})
    host.answers["GET /v1/models"] = (200, {"seq": 0, "folders": [], "models": []})
    variant = {"id": "q4-k-m", "format": "gguf", "quantization": "Q4_K_M", "repository": "Qwen/Qwen3-8B-GGUF"}
    entry = {**preset_samples.model().model_dump(mode="json"), "id": "qwen3-8b", "variants": [variant]}
    page = {"seq": 0, "models": [entry], "hardware": [], "profiles": [], "engines": []}
    host.answers["GET /v1/catalog"] = (200, page)
    chosen = {"model": "qwen3-8b/q4-k-m", "engine": "llama.cpp", "kv": "f16", "context": 1, "streams": 1}
    host.answers["POST /v1/fit"] = (200, {**chosen, "tensor_parallel": 1, "verdict": "fits"})
    err = sndr("run", "qwen3-8b")[2]
    assert "$ sndr models download Qwen/Qwen3-8B-GGUF --quant Q4_K_M" in err
