"""Steps of an engine become a speed; the engine itself needs a GPU."""

import argparse
from pathlib import Path

import pytest

from engine_host.bench.gpu.vllm_speed import Case, Step, engine_arguments, speed_of


def test_only_steps_with_all_answers_growing_count() -> None:
    case = Case(2, 1000)
    # One prompt is read after the other; then both answers get three tokens in 30 ms, until one ends.
    steps = [Step(1.0, 1, 2), Step(2.0, 2, 2)]
    steps += [Step(2.0 + 0.03 * number, 2 + 6 * number, 2) for number in range(1, 11)]
    steps += [Step(2.40, 65, 1), Step(9.0, 68, 0)]
    found = speed_of(case, 0.0, steps, first=2.0)
    assert found.prefill_rate == 1000
    assert found.ms_a_token == 10.0
    assert found.steps == 7
    assert found.median_step_ms == found.longest_step_ms == 30.0


def test_a_step_that_was_held_up_is_told() -> None:
    steps = [Step(1.0 + 0.03 * number + (number > 8) * 0.4, 3 * number, 1) for number in range(1, 12)]
    found = speed_of(Case(1, 1000), 0.0, steps, first=1.0)
    assert (found.median_step_ms, found.longest_step_ms) == (30.0, 430.0)


def test_too_few_steps_are_no_measurement() -> None:
    with pytest.raises(ValueError, match="fewer than 5 steps"):
        speed_of(Case(1, 10), 0.0, [Step(1.0, 1, 1), Step(2.0, 2, 1)], first=1.0)


def test_an_answer_outlasts_the_prompts_after_its_own() -> None:
    assert Case(1, 32768).answer(260, drafts=3) == 260
    assert Case(16, 32768).answer(260, drafts=3) == 260 + 15 * 4 * 4


def test_one_prompt_of_a_case_may_be_longer() -> None:
    case = Case.read("16x2048,131072")
    assert case.prompts == [2048] * 15 + [131072]
    assert case.answer(260, drafts=3) == 260 + (14 + 16) * 4
    assert Case.read("2x1000").prompts == [1000, 1000]


def options(*cases: str, **changed: object) -> argparse.Namespace:
    usual = {
        "cases": [Case.read(case) for case in cases],
        "kv": "auto",
        "drafts": 3,
        "acceptance": 3.0,
        "eager": False,
        "compile": False,
        "tensor_parallel": 1,
        "quantization": None,
    }
    return argparse.Namespace(**{**usual, **changed})


def test_graphs_are_captured_for_what_occurs(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"text_config": {}}')
    found = engine_arguments(options("1x512", "16x32768"), tmp_path)
    assert found["compilation_config"]["cudagraph_capture_sizes"] == [1, 4, 16, 64]
    assert found["speculative_config"]["synthetic_acceptance_length"] == 3.0
    assert found["max_model_len"] > 32768
    assert found["language_model_only"]
    found = engine_arguments(options("1x512", drafts=0, eager=True, quantization="fp8"), tmp_path)
    assert "speculative_config" not in found
    assert "compilation_config" not in found
    assert found["quantization"] == "fp8"
