"""Answers are compared token by token; the engine that gives them needs a GPU."""

from engine_host.bench.gpu.token_answers import prompts
from engine_host.bench.gpu.vllm_answers import compare


def test_the_first_difference_counts_with_how_near_the_decision_was() -> None:
    without = {"tokens": [[1, 2, 3], [4, 5, 6], [7, 8]], "gaps": [[0.5, 0.25, 0.0], [1.0] * 3, [1.0] * 2]}
    other = {"tokens": [[1, 9, 3], [4, 5, 6], [7, 8, 9]], "asked": {"drafts": 3}, "drafts": {"taken": 1}}
    found = compare(without, other)
    assert (found["equal"], found["of"]) == (1, 3)
    assert found["differing"] == [(1, 0.25), (2, None)]
    assert found["asked"] == {"drafts": 3}


def test_prompts_are_the_same_every_time() -> None:
    first = prompts()
    assert first == prompts()
    assert len(first) == 40
    assert [len(prompt) for prompt in first[:4]] == [1, 2, 3, 5]
    assert all(3 <= token < 512 for prompt in first for token in prompt)
