"""Answers that are text, and answers of an engine gone wrong."""

import random

import pytest

from engine_host.bench.lab.gates import fault, too_short

ESSAY = (
    "Attention lets each token look at all tokens before it. A query is compared with every key, the scores "
    "become weights, and the values are mixed by them. Several heads do this side by side, so that one may "
    "follow grammar while another remembers names. Positions enter by rotation."
)
CODE = '''def quicksort(items: list[int]) -> list[int]:
    """Return the numbers in order."""
    # ---------------------------------------------------------------------------
    if len(items) < 2:
        return items
    pivot = items[len(items) // 2]
    left = [one for one in items if one < pivot]
    middle = [one for one in items if one == pivot]
    right = [one for one in items if one > pivot]
    return quicksort(left) + middle + quicksort(right)
'''


@pytest.mark.parametrize(("text", "variety"), [(ESSAY, 0.3), (CODE, 0.15), ("A short one.", None)])
def test_text_passes(text: str, variety: float | None) -> None:
    assert fault(text, least_variety=variety) == ""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        (" \n\t ", "empty"),
        ("!" * 200, "circle of 1 words"),
        (ESSAY + " the end of it" * 12, "circle of 4 words"),
        (
            "\n".join(f"{line}\nI repeat this." for line in ESSAY.split(" a")),
            "stands in it 6 times",
        ),
        ("\ud800\udfff" * 4, "no word"),
    ],
)
def test_what_is_no_text_says_why(text: str, why: str) -> None:
    assert why in fault(text, least_variety=0.3)


def test_a_short_answer_is_neither_good_nor_bad() -> None:
    assert fault("Yes, of course.", least_variety=0.3) == ""
    assert too_short("Yes, of course.", least_variety=0.3) == "it has 3 words, too few to be judged"
    assert too_short("Yes.", least_variety=0.3) == "it has 1 word, too few to be judged"
    # Where nobody asks for variety a short answer is a whole one; an empty one is a fault.
    assert too_short("Yes.", least_variety=None) == too_short(" ", least_variety=0.3) == ""
    assert too_short(ESSAY, least_variety=0.3) == ""


def test_a_loop_is_found_where_variety_is_not_asked_for() -> None:
    assert "circle" in fault("no " * 40, least_variety=None)


def test_few_different_words_are_told_by_their_share() -> None:
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta"]
    text = " ".join(random.Random(3).choices(words, k=150))
    assert "% of its words differ" in fault(text, least_variety=0.3)
