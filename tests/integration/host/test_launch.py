"""Presets started for real, with `sndr launch`: what the plan says, what runs then, what stops a start."""

import json
import subprocess
import sys
from typing import Any

import httpx
import pytest

from engine_host.core.errors import HostError
from engine_host.core.package_data import resources
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.errors import Reason
from engine_host.protocol.launch.plans import LaunchPlan, LaunchRequest, Layer, StartRequest
from engine_host.protocol.operations import table as ops
from engine_host.protocol.patches import PatchReason, PlannedPatches
from engine_host.protocol.presets import JudgePresets, SavePreset
from tests.integration.host.conftest import DEMO, RunningHost, wait_for
from tests.vllm_environment import vllm_venv

# Three processes of vLLM import torch one after the other, on two cores that others use too.
VLLM = 400.0
MINE = "format: 1\nid: mine\ntitle: Mine\nextends: demo-llamacpp\nsettings:\n  context: 1024\n"
WITHOUT = (
    "format: 1\nid: plain\ntitle: Without a patch\nextends: demo-vllm\n"
    "patches:\n  off: [json-whitespace-limit]\n"
)


def sndr(*words: str, timeout: float = 60) -> tuple[int, list[Any], str]:
    """The command line in a process of its own, with `--json`: exit code, values, what it said besides."""
    command = [sys.executable, "-m", "engine_host", *words, "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    return ended.returncode, [json.loads(line) for line in ended.stdout.splitlines()], ended.stderr


def plan(host: RunningHost, **fields: Any) -> LaunchPlan:
    return host.client.call(ops.PLAN, LaunchRequest(**fields))


def answered(host: RunningHost, model: str) -> str:
    """What the model answers through the public endpoint."""
    answer = httpx.post(
        f"http://127.0.0.1:{host.port}/v1/chat/completions",
        json={"model": model, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 8},
        timeout=120,
    )
    assert answer.status_code == 200, answer.text
    return str(answer.json()["choices"][0]["message"]["content"])


def test_a_preset_is_launched_with_its_settings_and_answers(host: RunningHost) -> None:
    code, values, _ = sndr("launch", "demo-llamacpp", "--detach")
    assert code == 0
    planned = LaunchPlan.model_validate(values[0])
    assert planned.model_path == str(resources() / "models" / "sndr-demo" / "sndr-demo-q8_0.gguf")
    engine = Engine.model_validate(values[-1]["engine"])
    assert (engine.state, engine.plan.preset, engine.plan.context) == (
        EngineState.READY,
        "demo-llamacpp",
        8192,
    )
    streams = next(setting for setting in engine.plan.settings if setting.name == "streams")
    assert (streams.value, streams.layer) == (2, Layer.PROFILE)
    assert answered(host, engine.name)
    # The diff against what runs now names the preset, too.
    changed = plan(host, model="sndr-demo").changes
    assert "preset: demo-llamacpp → none" in changed
    assert "streams: 2 → 8" in changed
    assert plan(host, preset="demo-llamacpp", overrides={"context": 2048}).changes == (
        "context: 8192 → 2048",
    )
    code, values, _ = sndr("launch", "demo-llamacpp")
    assert (code, values[-1]["error"]["reason"]) == (6, "conflict")


def test_ones_own_preset_is_launched_and_a_changed_one_is_noticed(host: RunningHost) -> None:
    saved = host.client.call(ops.SAVE_PRESET, SavePreset(text=MINE), id="mine")
    made = plan(host, preset="mine")
    context = next(setting for setting in made.settings if setting.name == "context")
    assert (context.value, context.layer) == (1024, Layer.USER)
    changed = SavePreset(text=MINE.replace("1024", "2048"), digest=saved.digest)
    host.client.call(ops.SAVE_PRESET, changed, id="mine")
    with pytest.raises(HostError) as raised:
        host.client.call(ops.START, StartRequest(plan=made.id))
    assert raised.value.reason is Reason.PLAN_STALE
    assert raised.value.problem.evidence["changed"] == ["the preset"]
    again = plan(host, preset="mine")
    engine = host.client.call(ops.START, StartRequest(plan=again.id))
    assert host.until(engine.id, EngineState.READY).plan.context == 2048


def test_a_model_put_into_the_folder_for_downloads_is_found_at_once(host: RunningHost) -> None:
    name = "Qwen3-Embedding-0.6B-Q8_0.gguf"
    with pytest.raises(HostError) as raised:
        plan(host, preset="qwen3-embedding-0.6b-cpu")
    assert raised.value.reason is Reason.MODEL_FILE_MISSING
    folder = host.folders.data / "models" / "Qwen" / "Qwen3-Embedding-0.6B-GGUF"
    folder.mkdir(parents=True)
    # Any model will do: only its name is known of this one.
    (folder / name).write_bytes((resources() / "models" / "sndr-demo" / "sndr-demo-q8_0.gguf").read_bytes())
    found = plan(host, preset="qwen3-embedding-0.6b-cpu")
    assert found.model_path == str(folder / name)


def test_every_preset_has_a_verdict_here(host: RunningHost) -> None:
    page = host.client.call(ops.JUDGE_PRESETS, JudgePresets())
    demo = next(one for one in page.verdicts if one.preset == "demo-llamacpp")
    assert (demo.verdict, demo.missing) == ("fits", ())
    assert demo.model == "sndr-demo-q8-0"


def test_the_files_of_the_bundled_model_are_the_catalogues(host: RunningHost) -> None:
    assert host.serving
    code, values, _ = sndr("presets", "verify", "demo-llamacpp")
    assert code == 0
    assert [file["sha256"] == file["expected"] for file in values[-1]["files"]] == [True]


def test_a_patch_that_a_preset_switches_off_does_not_reach_the_overlay(host: RunningHost) -> None:
    environment = str(vllm_venv())
    before = plan(host, preset="demo-vllm", installation=environment)
    assert before.patches is not None
    assert "json-whitespace-limit" in before.patches.chosen
    host.client.call(ops.SAVE_PRESET, SavePreset(text=WITHOUT), id="plain")
    code, values, _ = sndr("patches", "plan", "--preset", "plain")
    assert code == 0
    planned = PlannedPatches.model_validate(values[0])
    assert "json-whitespace-limit" not in planned.chosen
    made = plan(host, preset="plain", installation=environment)
    assert made.patches is not None
    assert set(before.patches.chosen) - set(made.patches.chosen) == {"json-whitespace-limit"}
    reasons = {one.patch: one.reason for one in made.patches.left_out}
    assert reasons["json-whitespace-limit"] is PatchReason.LEFT_OUT
    assert made.patches.digest != before.patches.digest
    assert made.patches.digest in " ".join(made.argv)
    # What the request names wins.
    asked = plan(host, preset="plain", installation=environment, patches={"only": ["json-whitespace-limit"]})
    assert asked.patches is not None
    assert asked.patches.chosen == ("json-whitespace-limit",)


@pytest.mark.timeout(VLLM + 80)
def test_the_preset_for_vllm_is_launched_and_answers(host: RunningHost) -> None:
    words = ("launch", "demo-vllm", "--installation", str(vllm_venv()), "--detach")
    code, values, said = sndr(*words, timeout=VLLM)
    assert code == 0, (values[-1:], said)
    engine = Engine.model_validate(values[-1]["engine"])
    assert (engine.plan.preset, engine.plan.context, engine.plan.streams) == ("demo-vllm", 2048, 2)
    layers = {setting.name: setting.layer for setting in engine.plan.settings}
    assert layers["kv_cache_gib"] is Layer.PRESET
    assert layers["tool_parser"] is Layer.MODEL
    assert layers["streams"] is Layer.PROFILE
    assert answered(host, engine.name)
    assert sndr("stop", engine.id)[0] == 0
    wait_for(
        lambda: all(one.state is EngineState.UNLOADED for one in host.client.call(ops.ENGINES).engines),
        "the engine's end",
    )


def test_what_is_promised_is_what_the_engine_says(host: RunningHost) -> None:
    """The demo model was trained for 8,192 tokens, and llama.cpp gives a stream no more."""
    asked = Overrides(context=32_768, streams=1)
    planned = plan(host, model=str(DEMO), overrides=asked)
    (told,) = (one for one in planned.findings if one.id == "context_beyond_training")
    assert "8,192 tokens" in told.message
    engine = host.start(overrides=asked)
    assert (engine.plan.context, engine.context) == (8192, 8192)
    answer = httpx.get(f"http://127.0.0.1:{host.port}/v1/models", timeout=10).json()
    (listed,) = answer["data"]
    assert (listed["max_model_len"], listed["meta"]["n_ctx"]) == (8192, 8192)


def test_what_somebody_else_asks_for_starts_with_consent_alone(host: RunningHost) -> None:
    own = host.folders.config / "presets"
    own.mkdir(parents=True, exist_ok=True)
    (own / "mine.yaml").write_text(MINE + "  extra_arguments: [--no-warmup]\n")
    code, values, _ = sndr("launch", "mine", "--detach")
    error = values[-1]["error"]
    assert (code, error["reason"]) == (6, Reason.CONSENT_NEEDED)
    assert [one["what"] for one in error["evidence"]["demands"]] == ["--no-warmup"]
    assert host.client.call(ops.ENGINES).engines == ()
    code, values, _ = sndr("launch", "mine", "--detach", "--accept", error["evidence"]["digest"])
    assert code == 0
    assert "--no-warmup" in Engine.model_validate(values[-1]["engine"]).plan.argv
    assert sndr("launch", "mine", "--detach", "--replace")[0] == 0, "it is remembered"
    (own / "mine.yaml").write_text(MINE + "  extra_arguments: [--no-warmup, --no-repack]\n")
    assert sndr("launch", "mine", "--detach", "--replace")[0] == 6, "the file has changed"
